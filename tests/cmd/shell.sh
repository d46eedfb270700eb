# What the commands of a file can use. `?` shows the exit statuses of the program, unless all are 0.
set -o pipefail
: >"$WORK/statuses"
orgvault() {
    command orgvault "$@"
    local status=$?
    echo $status >>"$WORK/statuses"
    return $status
}
# Starts a server for the vault, with more flags.
serve() {
    command orgvault serve --listen "$SERVER" --admin-listen '' "$@" >>"$WORK/log" 2>&1 &
    until (: >"/dev/tcp/${SERVER/://}") 2>"$WORK/refused"; do
        kill -0 $! || cat "$WORK/log" || return
        sleep 0.02
    done
}
stop() {
    kill "$(jobs -p)" && wait
}
# Writes a private file.
file() {
    (umask 077 && cat >"$1")
}
# Shows the output of a command, then its errors.
show() {
    cat "$WORK/out" "$WORK/err" | sed '$a\'
    local statuses
    statuses=$(uniq "$WORK/statuses" | paste -sd ' ')
    [ "${statuses:-0}" = 0 ] || echo "? $statuses"
    : >"$WORK/statuses"
    printf '\036'
}
