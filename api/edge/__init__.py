"""The edge: takes connections and whole requests without holding a thread for them.

One event loop a process reads heads and bodies within limits of bytes and time, decides
whose turn it is, lets reads wait for the pipeline, and sends answers as fast as they are
read. Only the work on a request whose body is there takes a thread.
"""
