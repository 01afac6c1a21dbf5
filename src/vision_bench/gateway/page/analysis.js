// The question about a clip, and what becomes of its answer: the same outcomes as `vision-bench analyze` has.

/** The body of one question: the clip whole, then the prompt, and a schema that the answer must keep to. */
export function analysisBody({ model, url, question, language, fps, listens }) {
  return {
    model,
    messages: [
      {
        role: "user",
        content: [
          { type: "video_url", video_url: { url } },
          { type: "text", text: question.prompts[language] },
        ],
      },
    ],
    temperature: 0.3,
    max_tokens: 1024,
    response_format: {
      type: "json_schema",
      json_schema: { name: question.schema_name, strict: true, schema: question.schema },
    },
    media_io_kwargs: { video: { fps } },
    // vLLM refuses this for a clip without a sound track.
    ...(listens ? { mm_processor_kwargs: { use_audio_in_video: true } } : {}),
    chat_template_kwargs: { enable_thinking: false },
  };
}

/** {outcome, result, error} of an answer; `result` is null unless every field is there and keeps to the schema. */
export function validate(answer, schema) {
  const choice = answer?.choices?.[0];
  const text = choice?.message?.content ?? "";
  const failure = (outcome, error) => ({ outcome, result: null, error, text });
  if (choice?.finish_reason === "length") return failure("length", "The answer was cut by max_tokens.");
  if (text.trim() === "") return failure("empty", "The answer holds no text.");
  let value;
  try {
    value = JSON.parse(text);
  } catch (problem) {
    return failure("invalid_json", `The answer is not JSON: ${problem.message}`);
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return failure("schema_mismatch", "The answer is no object.");
  }
  const missing = schema.required.filter((name) => !Object.hasOwn(value, name));
  if (missing.length > 0) return failure("missing_field", `The answer lacks ${missing.join(", ")}.`);
  for (const [name, content] of Object.entries(value)) {
    const rule = Object.hasOwn(schema.properties, name) ? schema.properties[name] : null;
    if (rule === null) return failure("schema_mismatch", `The answer has a field ${name} that was not asked for.`);
    if (typeof content !== "string") return failure("schema_mismatch", `${name} is no text.`);
    if ([...content].length > rule.maxLength) {
      return failure("schema_mismatch", `${name} has more than ${rule.maxLength} letters.`);
    }
  }
  return { outcome: "ok", result: value, error: null, text };
}
