#!/usr/bin/env bash
# Processes with names, for scripts/cluster: $home/NAME.pid says which process NAME is, $home/NAME.log is its log.
# Wants $home.
: "${home:?}"

# A pid file holds "pid start-time", so that a pid that the system gave to another process is not mistaken.
# A process that has ended and that nobody has waited for has none.
start_time() { sed -n 's/^.*) //; /^Z/!p' "/proc/$1/stat" 2>/dev/null | cut -d' ' -f20; }
pid_of() { # pid_of NAME: prints the pid if that very process runs
  local pid start
  [[ -f $home/$1.pid ]] && read -r pid start <"$home/$1.pid" || return 1
  [[ -n $start && $(start_time "$pid") == "$start" ]] && echo "$pid"
}
running() { # running [PATTERN]: the names of what runs, a line each
  local file name
  for file in "$home"/${1:-*}.pid; do
    name=$(basename "$file" .pid)
    if pid_of "$name" >/dev/null; then echo "$name"; fi
  done
}
launch() { # launch NAME COMMAND...: in a session of its own, without the lock of this script
  local name=$1
  shift
  setsid "$@" >>"$home/$name.log" 2>&1 </dev/null 9>&- &
  echo "$! $(start_time $!)" >"$home/$name.pid"
}
wait_for() { # wait_for NAME COMMAND...: until the command succeeds, at most 60 s, as long as the process lives
  local name=$1
  shift
  for _ in {1..600}; do
    "$@" >/dev/null 2>&1 && return
    pid_of "$name" >/dev/null || break
    sleep 0.1
  done
  tail -n 15 "$home/$name.log" >&2
  echo "cluster: $name did not come up; its log is $home/$name.log. 'scripts/cluster down' stops the rest" >&2
  return 3
}
stop() { # stop NAME...: all at once, paused ones too; killed after 30 s
  local name pid
  for name in "$@"; do
    if pid=$(pid_of "$name"); then kill -TERM "$pid" && kill -CONT "$pid"; fi
  done
  for name in "$@"; do
    for _ in {1..300}; do
      pid_of "$name" >/dev/null || break
      sleep 0.1
    done
    if pid=$(pid_of "$name"); then kill -KILL "$pid"; fi
    rm -f "$home/$name.pid"
  done
}

free_port() { # none of those that the kernel gives to clients: one of them would have it when the server comes back
  local clients port
  read -r clients _ </proc/sys/net/ipv4/ip_local_port_range
  [[ $clients -ge 21024 ]] || clients=21024
  while port=$((clients - 20000 + RANDOM * 20000 / 32768)) && taken "$port"; do :; done
  echo "$port"
}
taken() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }
port_for() { # port_for NAME KIND: the port of last time, unless another program has taken it meanwhile
  local file=$home/$1.$2 port
  if [[ -f $file ]] && { pid_of "$1" >/dev/null || ! taken "$(<"$file")"; }; then
    cat "$file"
  else
    port=$(free_port)
    echo "$port" | tee "$file"
  fi
}
