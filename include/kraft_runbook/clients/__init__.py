"""The only I/O of the project: each module talks to one kind of server and returns core types."""
