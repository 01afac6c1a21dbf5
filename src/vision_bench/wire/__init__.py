"""What crosses a socket, as pure functions: bytes or dicts in and out, no sockets, standard library only."""
