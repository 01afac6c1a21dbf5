#!/usr/bin/env bash
# Run the gateway in the background.
#
#   script/service.sh start | status | restart | stop
#
# HOST (127.0.0.1) and PORT (8001) say where; settings come from the environment and .env (docs/gateway.md).
# PID and log lie in runs/service/, one pair a port, so that several gateways can run side by side. The PID file also
# holds when that process started, where the system tells: a PID is given to another program one day.
#
# Exit codes: 0 done; 1 not running, or not answering; 2 usage; 3 the address is not to be had; 4 the server ended
# while it started, or could not with these settings (the reason is printed); 5 it runs but did not answer in time.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 2

host=${HOST-127.0.0.1}
port=${PORT-8001}
python=.venv/bin/python
[ -x "$python" ] || python=python3
pid_file=runs/service/gateway-$port.pid
log_file=runs/service/gateway-$port.log
lock_file=runs/service/gateway-$port.lock
start_seconds=60
stop_seconds=40 # the server gives running calls 30 s

case $host in
    0.0.0.0) url=http://127.0.0.1:$port ;;
    ::) url=http://[::1]:$port ;;
    *:*) url=http://[$host]:$port ;;
    *) url=http://$host:$port ;;
esac

say() { echo "$*" >&2; }

check_address() {
    if ! [[ $port =~ ^[1-9][0-9]{0,4}$ ]] || ((port > 65535)); then
        say "PORT=$port is no port: give a number from 1 to 65535"
        exit 2
    fi
    if [[ -z $host || $host =~ [[:space:]/] ]]; then
        say "HOST='$host' is no host: give a name or an address of this machine, such as 127.0.0.1"
        exit 2
    fi
}

# The questions that need more than a shell, and no curl, ps or lsof.
ask() {
    "$python" - "$@" <<'PY'
import fcntl, os, pathlib, socket, subprocess, sys, time, urllib.request

HAS_PROC = os.path.isdir("/proc/self")

def started(pid):
    """When the process started, in the system's ticks; nothing where that is not told."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return ""

def is_ours(pid, port, since=""):
    """Whether the process is this folder's gateway on that port: a PID may have gone to another program since."""
    if since and started(pid) != since:
        return False
    try:
        if HAS_PROC:
            words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
            if not os.path.samefile(f"/proc/{pid}/cwd", "."):
                return False
        else:
            words = subprocess.run(["ps", "-p", pid, "-o", "args="], capture_output=True, text=True).stdout.split()
    except OSError:
        return False
    return has_row(words, ["-m", "uvicorn", "app:app"]) and has_row(words, ["--port", port])

def has_row(words, row):
    return any(words[at : at + len(row)] == row for at in range(len(words)))

def listens(pid, port):
    """Whether that process holds a listening socket on the port; taken for granted where the system does not say."""
    if not HAS_PROC:
        return True
    inodes = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            rows = [line.split() for line in pathlib.Path(table).read_text().splitlines()[1:]]
        except OSError:
            continue
        inodes |= {row[9] for row in rows if row[3] == "0A" and int(row[1].rpartition(":")[2], 16) == int(port)}
    try:
        held = {os.readlink(entry.path) for entry in os.scandir(f"/proc/{pid}/fd")}
    except OSError:
        return False
    return any(f"socket:[{inode}]" in held for inode in inodes)

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
        if listens(pid, port) and answers(url):
            return 0
        time.sleep(0.1)
    return 5

def wait_until_gone(pid, port, since, seconds):
    deadline = time.monotonic() + float(seconds)
    while is_ours(pid, port, since):
        if time.monotonic() > deadline:
            return 1
        time.sleep(0.1)
    return 0

def lock(number, seconds):
    """Take the lock of a file that the shell has open: it holds until the shell ends."""
    deadline = time.monotonic() + float(seconds)
    while True:
        try:
            return fcntl.flock(int(number), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                return 1
            time.sleep(0.1)

def wrong_settings():
    """Why a gateway could not start with the settings as they are now, or nothing."""
    sys.path.insert(0, "src")
    from vision_bench.errors import InvalidSettings
    from vision_bench.gateway.settings import load_settings
    try:
        load_settings()
    except InvalidSettings as problem:
        return f"error: {problem}"

question, *words = sys.argv[1:]
if question == "bind":
    reason = cannot_bind(*words)
    print(reason or "", end="")
    sys.exit(bool(reason))
elif question == "ours":
    sys.exit(not is_ours(*words))
elif question == "started":
    print(started(*words), end="")
elif question == "lock":
    sys.exit(lock(*words))
elif question == "settings":
    sys.exit(wrong_settings())
elif question == "answers":
    sys.exit(not answers(*words))
elif question == "up":
    sys.exit(wait_until_up(*words))
elif question == "gone":
    sys.exit(wait_until_gone(*words))
PY
}

# Two that start or stop at once would not see each other: the second waits for the first.
take_turn() {
    mkdir -p runs/service
    exec 9>"$lock_file"
    if ! ask lock 9 $((start_seconds + stop_seconds + 20)); then
        say "another $0 is at work on port $port and does not end"
        exit 5
    fi
}

# Sets pid to that of the running gateway and since to its start, or both to nothing. A stale PID file is removed.
find_pid() {
    pid= since=
    [ -f "$pid_file" ] || return 0
    local written
    read -r written since <"$pid_file"
    if [[ $written =~ ^[0-9]+$ ]] && ask ours "$written" "$port" "$since"; then
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
    PYTHONPATH=src nohup "$python" -m uvicorn app:app --host "$host" --port "$port" \
        --timeout-graceful-shutdown 30 --http vision_bench.gateway.protocol:GuardedProtocol --no-access-log >"$log_file" 2>&1 </dev/null 9>&- &
    pid=$!
    echo "$pid $(ask started "$pid")" >"$pid_file.new"
    mv "$pid_file.new" "$pid_file"
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

# A restart that could not start again must not have stopped anything.
check_settings() {
    ask settings && return 0
    say "not restarted; what runs goes on"
    return 4
}

stop() {
    find_pid
    if [ -z "$pid" ]; then
        say "not running on port $port"
        return 0
    fi
    kill "$pid" 2>/dev/null
    if ! ask gone "$pid" "$port" "$since" "$stop_seconds"; then
        say "PID $pid did not end in $stop_seconds s; killing it"
        kill -9 "$pid" 2>/dev/null
        ask gone "$pid" "$port" "$since" 5
    fi
    rm -f "$pid_file"
    say "stopped: PID $pid"
}

check_address
case ${1:-} in
    start) take_turn && start ;;
    status) status ;;
    restart) take_turn && check_settings && stop && start ;;
    stop) take_turn && stop ;;
    *)
        say "usage: $0 start | status | restart | stop    (HOST=$host PORT=$port)"
        exit 2
        ;;
esac
