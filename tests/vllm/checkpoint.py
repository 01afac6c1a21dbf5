"""A random-weights Qwen3-Omni of 1.2 million parameters that real vLLM serves on a CPU. Run by vLLM's environment.

    python checkpoint.py FOLDER

It exercises all of vLLM but the quality of answers: decoding of video and sound, expansion of the prompt, caches,
scheduler, grammars, metrics. Its answers are noise, yet usable noise: printable ASCII, never a special token, and JSON
strings that close. At temperature 0 they are the same across restarts and differ with picture, rate and sound.
Nothing is downloaded: the tokenizer is trained here on a few lines, the weights are drawn from a seed.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from torch import nn
from transformers import Qwen3OmniMoeConfig, Qwen3OmniMoeForConditionalGeneration

SEED = 0
VOCABULARY = 512
HIDDEN, LAYERS, HEAD_DIM = 128, 2, 32
HEADS = HIDDEN // HEAD_DIM

# The real model's special tokens: vLLM and the processor find media by them.
SPECIAL_TOKENS = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|vision_pad|>",
    "<|image_pad|>",
    "<|video_pad|>",
    "<|audio_start|>",
    "<|audio_end|>",
    "<|audio_pad|>",
    "<tts_pad>",
    "<tts_text_bos>",
    "<tts_text_eod>",
)
# The processor reads these as attributes of the tokenizer.
NAMED_TOKENS = {
    "image_token": "<|image_pad|>",
    "video_token": "<|video_pad|>",
    "audio_token": "<|audio_pad|>",
    "vision_bos_token": "<|vision_start|>",
    "vision_eos_token": "<|vision_end|>",
    "audio_bos_token": "<|audio_start|>",
    "audio_eos_token": "<|audio_end|>",
}
# What the tokenizer learns its words from: the three roles must come out as known words.
CORPUS = (
    "system user assistant: you watch a short video clip, listen to its sound and answer in one JSON object.",
    "Analyze the video and audio in this clip. What is seen? What is said? Which words are on the screen?",
    '{"scene": "a player runs", "speech": "none", "on_screen_text": "3 : 2", "summary": "a short play"}',
    '{"label": "cat", "score": 0.25, "count": 7, "safe": true, "tags": ["red", "blue"], "note": null}',
    "1 2 3 4 5 6 7 8 9 10 11 12 15 20 24 25 30 48 50 60 100 480 720 1080 1920 2026",
    "The picture is black. The commentator speaks. The score board shows two teams. The crowd cheers. Yes. No.",
)
# How the model's family splits text before it looks for words.
SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
# A loop over message.content is what makes vLLM pass the parts on as they came ("openai" content format).
CHAT_TEMPLATE = """
{%- for message in messages -%}
{{ '<|im_start|>' + message.role + '\n' }}
{%- if message.content is string -%}
{{ message.content }}
{%- else -%}
{%- for part in message.content -%}
{%- if part.type == 'text' -%}
{{ part.text }}
{%- elif part.type in ('image', 'image_url') -%}
{{ '<|vision_start|><|image_pad|><|vision_end|>' }}
{%- elif part.type in ('video', 'video_url') -%}
{{ '<|vision_start|><|video_pad|><|vision_end|>' }}
{%- elif part.type in ('audio', 'audio_url', 'input_audio') -%}
{{ '<|audio_start|><|audio_pad|><|audio_end|>' }}
{%- endif -%}
{%- endfor -%}
{%- endif -%}
{{ '<|im_end|>\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}
{{ '<|im_start|>assistant\n' }}
{%- endif -%}
"""

# Hidden dimension 0 of the language model holds this value for every token, whatever it stands for: no layer writes
# to it. Column 0 of lm_head then acts as a bias on each output token, which a random model otherwise has not.
CONSTANT = 4.0
NEVER, SELDOM, EVEN, LIKELY = -3.0, -0.6, 0.0, 0.25


def write_json(path: Path, value: Any) -> None:
    """One JSON file of the checkpoint."""
    path.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")


def write_tokenizer(folder: Path) -> Tokenizer:
    """Train a byte-level BPE on the corpus and write it with the chat template."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(SPLIT), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY - len(SPECIAL_TOKENS),
        min_frequency=2,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    # Four times, so that every word passes min_frequency.
    tokenizer.train_from_iterator(CORPUS * 4, trainer)
    tokenizer.add_special_tokens(list(SPECIAL_TOKENS))
    tokenizer.save(str(folder / "tokenizer.json"))
    configuration = {
        "tokenizer_class": "Qwen2TokenizerFast",
        "processor_class": "Qwen3OmniMoeProcessor",
        "add_prefix_space": False,
        "clean_up_tokenization_spaces": False,
        "split_special_tokens": False,
        "model_max_length": 131072,
        "bos_token": None,
        "unk_token": None,
        "eos_token": "<|im_end|>",
        "pad_token": "<|endoftext|>",
        "extra_special_tokens": NAMED_TOKENS,
        "chat_template": CHAT_TEMPLATE,
    }
    write_json(folder / "tokenizer_config.json", configuration)
    write_json(folder / "chat_template.json", {"chat_template": CHAT_TEMPLATE})
    return tokenizer


def write_processors(folder: Path) -> None:
    """How images, video and sound become what the encoders take; the real model's numbers, smaller images."""
    vision = {
        "processor_class": "Qwen3OmniMoeProcessor",
        "image_mean": [0.5, 0.5, 0.5],
        "image_std": [0.5, 0.5, 0.5],
        "patch_size": 16,
        "temporal_patch_size": 2,
        "merge_size": 2,
        "size": {"shortest_edge": 4 * 32 * 32, "longest_edge": 64 * 32 * 32},
    }
    sound = {
        "feature_extractor_type": "WhisperFeatureExtractor",
        "feature_size": 128,
        "sampling_rate": 16000,
        "hop_length": 160,
        "n_fft": 400,
        "chunk_length": 300,
        "n_samples": 300 * 16000,
        "nb_max_frames": 30000,
        "padding_side": "right",
        "padding_value": 0.0,
        "dither": 0.0,
        "return_attention_mask": True,
    }
    pixels = {"min_pixels": vision["size"]["shortest_edge"], "max_pixels": vision["size"]["longest_edge"]}
    image = {"image_processor_type": "Qwen2VLImageProcessor"}
    video = {"video_processor_type": "Qwen2VLVideoProcessor", "min_frames": 4, "max_frames": 768}
    write_json(folder / "preprocessor_config.json", {**vision, **sound, **pixels, **image})
    write_json(folder / "video_preprocessor_config.json", {**vision, **video})


def padded(size: int) -> int:
    """The size of the output layer: the next multiple of 64."""
    return (size + 63) // 64 * 64


def configuration_of(tokenizer: Tokenizer) -> Qwen3OmniMoeConfig:
    """The thinker, small; the talker only has to be there."""
    half = HEAD_DIM // 2
    third = half // 3
    rope = {
        "rope_type": "default",
        "rope_theta": 1_000_000.0,
        "mrope_interleaved": True,
        "interleaved": True,
        "mrope_section": [half - 2 * third, third, third],
    }
    text = {
        "vocab_size": padded(tokenizer.get_vocab_size()),
        "hidden_size": HIDDEN,
        "intermediate_size": 2 * HIDDEN,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": HEADS // 2,
        "head_dim": HEAD_DIM,
        "max_position_embeddings": 65536,
        "rope_parameters": rope,
        "num_experts": 4,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": HIDDEN,
        "decoder_sparse_step": 1,
        "norm_topk_prob": True,
        "tie_word_embeddings": False,
    }
    vision = {
        "depth": 2,
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_heads": 2,
        "patch_size": 16,
        "spatial_merge_size": 2,
        "temporal_patch_size": 2,
        "out_hidden_size": HIDDEN,
        "num_position_embeddings": 2304,
        "deepstack_visual_indexes": [0],
        **READ_BY_VLLM,
    }
    sound = {
        "num_mel_bins": 128,
        "encoder_layers": 1,
        "encoder_attention_heads": 2,
        "encoder_ffn_dim": 128,
        "d_model": 64,
        "output_dim": HIDDEN,
        "n_window": 50,
        "n_window_infer": 800,
        "downsample_hidden_size": 16,
        "max_source_positions": 1500,
    }
    token = tokenizer.token_to_id
    media = {
        "audio_token_id": token("<|audio_pad|>"),
        "image_token_id": token("<|image_pad|>"),
        "video_token_id": token("<|video_pad|>"),
        "audio_start_token_id": token("<|audio_start|>"),
        "vision_start_token_id": token("<|vision_start|>"),
    }
    role = {f"{name}_token_id": tokenizer.encode(name).ids[0] for name in ("system", "user", "assistant")}
    thinker = {
        **media,
        "user_token_id": role["user_token_id"],
        "vision_end_token_id": token("<|vision_end|>"),
        "audio_end_token_id": token("<|audio_end|>"),
        "position_id_per_seconds": 13,
        "seconds_per_chunk": 2,
        "text_config": text,
        "vision_config": vision,
        "audio_config": sound,
    }
    return Qwen3OmniMoeConfig(
        thinker_config=thinker,
        talker_config=talker(media),
        enable_audio_output=False,
        im_start_token_id=token("<|im_start|>"),
        im_end_token_id=token("<|im_end|>"),
        tts_pad_token_id=token("<tts_pad>"),
        tts_bos_token_id=token("<tts_text_bos>"),
        tts_eos_token_id=token("<tts_text_eod>"),
        **role,
    )


# The published configuration has both, transformers 5.19 has defaults for neither, vLLM reads them.
READ_BY_VLLM = {"image_size": 768, "apply_vit_abs_pos_embed": True}


def talker(media: dict[str, int]) -> dict[str, Any]:
    """The part that would speak. vLLM never loads it; the configuration has to parse."""
    layer = {
        "num_hidden_layers": 1,
        "hidden_size": 64,
        "vocab_size": 64,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "intermediate_size": 64,
    }
    experts = {"moe_intermediate_size": 64, "num_experts": 2, "num_experts_per_tok": 1}
    return {**media, "text_config": {**layer, **experts}, "code_predictor_config": {**layer, "head_dim": 32}}


def output_bias(tokenizer: Tokenizer, index: int) -> float:
    """How much the model should like token ``index``, so that noise reads as text and JSON comes to an end."""
    if index >= tokenizer.get_vocab_size():
        return NEVER
    piece = tokenizer.decode([index], skip_special_tokens=True)
    if not piece or not all(32 <= ord(letter) < 127 for letter in piece):
        return NEVER
    if piece in ('"', "}", "]", ","):
        return LIKELY
    return EVEN if piece.strip() else SELDOM


@torch.no_grad()
def hold_constant(model: nn.Module, tokenizer: Tokenizer) -> None:
    """Keep hidden dimension 0 at ``CONSTANT`` from the embeddings to the output, and use it as a bias there."""
    thinker = model.thinker
    language = thinker.model
    language.embed_tokens.weight[:, 0] = CONSTANT
    for layer in language.layers:
        layer.self_attn.o_proj.weight[0].zero_()
        layer.mlp.experts.down_proj[:, 0, :].zero_()
    # Deepstack features are added to the hidden state, so theirs is 0.
    outputs = [(thinker.visual.merger.mlp[2], CONSTANT), (thinker.audio_tower.proj2, CONSTANT)]
    outputs += [(merger.mlp[2], 0.0) for merger in thinker.visual.merger_list]
    for linear, value in outputs:
        linear.weight[0].zero_()
        linear.bias[0] = value
    head = thinker.lm_head.weight
    for index in range(head.shape[0]):
        head[index, 0] = output_bias(tokenizer, index)


def write_model(folder: Path, tokenizer: Tokenizer) -> int:
    """Draw the weights, write them in bfloat16, return how many there are."""
    torch.manual_seed(SEED)
    model = Qwen3OmniMoeForConditionalGeneration(configuration_of(tokenizer)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() >= 2:
                # With the usual 0.02 a random network answers the same to any picture.
                parameter.normal_(0.0, 0.12)
        model.thinker.model.embed_tokens.weight.normal_(0.0, 0.5)
    hold_constant(model, tokenizer)
    model = model.to(torch.bfloat16)
    model.save_pretrained(folder)
    path = folder / "config.json"
    written = json.loads(path.read_text(encoding="utf-8"))
    written |= {"architectures": ["Qwen3OmniMoeForConditionalGeneration"], "dtype": "bfloat16"}
    written["thinker_config"]["vision_config"] |= READ_BY_VLLM
    write_json(path, written)
    end, padding = tokenizer.token_to_id("<|im_end|>"), tokenizer.token_to_id("<|endoftext|>")
    generation = {"eos_token_id": [end, padding], "pad_token_id": padding, "do_sample": False}
    write_json(folder / "generation_config.json", generation)
    return sum(parameter.numel() for parameter in model.parameters())


def main() -> None:
    """Write everything below the folder that is named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True)
    tokenizer = write_tokenizer(folder)
    write_processors(folder)
    parameters = write_model(folder, tokenizer)
    print(f"{parameters:,} parameters, {tokenizer.get_vocab_size()} tokens in {padded(tokenizer.get_vocab_size())}")


if __name__ == "__main__":
    main()
