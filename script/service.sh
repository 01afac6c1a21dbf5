#!/usr/bin/env bash
# Run the gateway in the background.
#
#   script/service.sh start | status | restart | stop
#
# HOST (127.0.0.1) and PORT (8001) say where; settings come from the environment and .env (docs/gateway.md).
# PID and log lie in runs/service/, one pair a port, so that several gateways can run side by side.
#
# Exit codes: 0 done; 1 not running, or not answering; 2 usage; 3 the address is not to be had; 4 the server ended
# while it started (its reason is printed); 5 it runs but did not answer in time.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 2

host=${HOST:-127.0.0.1}
port=${PORT:-8001}
python=.venv/bin/python
[ -x "$python" ] || python=python3
pid_file=runs/service/gateway-$port.pid
log_file=runs/service/gateway-$port.log
start_seconds=60
stop_seconds=40 # the server gives running calls 30 s

case $host in
    0.0.0.0) url=http://127.0.0.1:$port ;;
    ::) url=http://[::1]:$port ;;
    *:*) url=http://[$host]:$port ;;
    *) url=http://$host:$port ;;
esac

say() { echo "$*" >&2; }

# The questions that need more than a shell, and no curl, ps or lsof.
ask() {
    "$python" - "$@" <<'PY'
import os, pathlib, socket, subprocess, sys, time, urllib.request

def is_ours(pid, port):
    """Whether the process is a gateway on that port: a PID may have gone to another program since."""
    try:
        words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        if os.path.isdir("/proc/self"):
            return False
        words = subprocess.run(["ps", "-p", pid, "-o", "args="], capture_output=True, text=True).stdout.split()
    return "app:app" in words and port in words

def answers(url):
    try:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"{url}/healthz", timeout=2) as reply:
            return reply.status == 200
    except OSError:
        return False

def cannot_bind(host, port):
    """The reason why the address cannot be had, or nothing."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        with socket.socket(found[0], socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(found[4])
            probe.listen()
    except (OSError, OverflowError) as problem:
        return getattr(problem, "strerror", None) or str(problem)

def wait_until_up(pid, port, url, seconds):
    deadline = time.monotonic() + float(seconds)
    while time.monotonic() < deadline:
        if not is_ours(pid, port):
            return 4
        if answers(url):
            return 0
        time.sleep(0.1)
    return 5

def wait_until_gone(pid, port, seconds):
    deadline = time.monotonic() + float(seconds)
    while is_ours(pid, port):
        if time.monotonic() > deadline:
            return 1
        time.sleep(0.1)
    return 0

question, *words = sys.argv[1:]
if question == "bind":
    reason = cannot_bind(*words)
    print(reason or "", end="")
    sys.exit(bool(reason))
elif question == "ours":
    sys.exit(not is_ours(*words))
elif question == "answers":
    sys.exit(not answers(*words))
elif question == "up":
    sys.exit(wait_until_up(*words))
elif question == "gone":
    sys.exit(wait_until_gone(*words))
PY
}

# Sets pid to that of the running gateway, or to nothing. A stale PID file is removed.
find_pid() {
    pid=
    [ -f "$pid_file" ] || return 0
    local written
    written=$(cat "$pid_file")
    if [[ $written =~ ^[0-9]+$ ]] && ask ours "$written" "$port"; then
        pid=$written
    else
        say "removing a stale PID file: $pid_file names ${written:-nothing}, which is no gateway on port $port"
        rm -f "$pid_file"
    fi
}

start() {
    find_pid
    if [ -n "$pid" ]; then
        say "already running: PID $pid, $url"
        return 0
    fi
    local reason status
    if ! reason=$(ask bind "$host" "$port"); then
        say "cannot listen on $host:$port: $reason. Another program has the port, or HOST is not this machine's;" \
            "choose another with PORT= or HOST="
        return 3
    fi
    mkdir -p runs/service
    PYTHONPATH=src nohup "$python" -m uvicorn app:app --host "$host" --port "$port" \
        --timeout-graceful-shutdown 30 --timeout-keep-alive 75 --no-access-log >"$log_file" 2>&1 </dev/null &
    pid=$!
    echo "$pid" >"$pid_file"
    ask up "$pid" "$port" "$url" "$start_seconds"
    status=$?
    case $status in
        0) say "started: PID $pid, $url, log $log_file" ;;
        4)
            rm -f "$pid_file"
            say "the server ended while it started; the end of $log_file:"
            tail -n 5 "$log_file" >&2
            ;;
        *)
            say "PID $pid runs but $url/healthz did not answer in $start_seconds s; see $log_file, then $0 stop"
            status=5
            ;;
    esac
    return $status
}

status() {
    find_pid
    if [ -z "$pid" ]; then
        local reason
        if reason=$(ask bind "$host" "$port"); then
            say "not running on port $port"
        else
            say "not running; $host:$port is not to be had ($reason): another program may hold the port"
        fi
        return 1
    fi
    if ask answers "$url"; then
        echo "running: PID $pid, port $port, healthz ok ($url/healthz), log $log_file"
    else
        echo "running but not answering: PID $pid, port $port, healthz failed ($url/healthz), log $log_file"
        return 1
    fi
}

stop() {
    find_pid
    if [ -z "$pid" ]; then
        say "not running on port $port"
        return 0
    fi
    kill "$pid" 2>/dev/null
    if ! ask gone "$pid" "$port" "$stop_seconds"; then
        say "PID $pid did not end in $stop_seconds s; killing it"
        kill -9 "$pid" 2>/dev/null
        ask gone "$pid" "$port" 5
    fi
    rm -f "$pid_file"
    say "stopped: PID $pid"
}

case ${1:-} in
    start) start ;;
    status) status ;;
    restart) stop && start ;;
    stop) stop ;;
    *)
        say "usage: $0 start | status | restart | stop    (HOST=$host PORT=$port)"
        exit 2
        ;;
esac
