"""Pure: values in, values out. No clocks, threads, sockets or logging."""
