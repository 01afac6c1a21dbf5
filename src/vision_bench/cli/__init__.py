"""One module a verb: parse, call one function, print."""
