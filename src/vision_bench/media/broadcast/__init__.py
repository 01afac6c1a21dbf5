"""The labelled broadcast: seven genres of synthetic television whose content is known to the frame."""
