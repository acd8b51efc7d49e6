"""The only I/O of the project: each module talks to one kind of server and returns core types."""

import warnings

# kafka-python loads its schemas by calls that Python 3.11 deprecates: several warnings a schema, hundreds of lines in a
# task's log.
warnings.filterwarnings("ignore", message="(read|open)_text is deprecated", category=DeprecationWarning)
