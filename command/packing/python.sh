#!/bin/sh
# The Python of this machine, with the environment that this file lies in. It is tied to that Python
# when it is first used: no path of any machine is packed.
here=$(cd "$(dirname "$0")/.." && pwd -P) || exit 1
own="$here/bin/python@VERSION@"
if ! [ -x "$own" ]; then
    found=$(command -v python@VERSION@) || {
        echo "servioticy: this machine has no python@VERSION@ on its PATH, which $here was packed for" >&2
        exit 127
    }
    real=$("$found" -c 'import os, sys; print(os.path.realpath(sys._base_executable))') || exit 127
    # Of several that begin at once each makes the same, and the last one stays.
    echo "home = ${real%/*}" >"$here/pyvenv.cfg.$$" && mv -f "$here/pyvenv.cfg.$$" "$here/pyvenv.cfg" &&
        ln -s "$real" "$own.$$" && mv -f "$own.$$" "$own" || {
        echo "servioticy: $here cannot be written to, and was not used before" >&2
        exit 126
    }
fi
# What lies here is this machine's, whatever the machine that asks for it has.
SERVIOTICY_SPARK_WORKER=1
SERVIOTICY_JAVASCRIPT=${SERVIOTICY_JAVASCRIPT:-$here/javascript}
export SERVIOTICY_SPARK_WORKER SERVIOTICY_JAVASCRIPT
exec "$own" "$@"
