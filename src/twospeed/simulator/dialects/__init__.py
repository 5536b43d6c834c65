"""One module per runtime that the simulator can pass for; each holds a `DIALECT`."""
