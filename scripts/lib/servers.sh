#!/usr/bin/env bash
# The servers of scripts/cluster: MariaDB, and one or three ZooKeepers. Wants $home and processes.sh.
: "${home:?}"

mysql_port() { cat "$home/mariadb.port"; }
mysql_query() { # mysql_query SQL: bare rows
  MYSQL_PWD=$(<"$home/password") mariadb --no-defaults -h 127.0.0.1 -P "$(mysql_port)" -u millrace -N -B \
    -e "$1" millrace
}
mysql_ping() { mysql_query 'SELECT 1'; }
make_mysql() { # the data folder and the password, once
  [[ -f $home/password ]] || (umask 077; head -c 18 /dev/urandom | base64 | tr '+/' 'ab' >"$home/password")
  [[ ! -d $home/mariadb/mysql ]] || return 0
  rm -rf "$home/mariadb"
  mariadb-install-db --no-defaults --user="$(id -un)" --datadir="$home/mariadb" --skip-test-db \
    --auth-root-authentication-method=normal >"$home/mariadb.log" 2>&1 ||
    { tail -n 15 "$home/mariadb.log" >&2; echo "cluster: mariadb-install-db failed" >&2; return 1; }
}
start_mysql() {
  pid_of mariadb >/dev/null && return
  make_mysql
  # root has no password, so it may come in through the socket in the data folder alone.
  (umask 077; cat >"$home/init.sql") <<SQL
CREATE DATABASE IF NOT EXISTS millrace CHARACTER SET utf8mb4;
DROP USER IF EXISTS root@localhost, root@'127.0.0.1', root@'::1', root@'$(hostname)', ''@localhost;
CREATE USER IF NOT EXISTS millrace@'127.0.0.1';
ALTER USER millrace@'127.0.0.1' IDENTIFIED BY '$(<"$home/password")';
GRANT ALL ON millrace.* TO millrace@'127.0.0.1';
GRANT ALL ON \`millrace\_%\`.* TO millrace@'127.0.0.1';
SQL
  # A relative socket lies in the data folder, however long that folder's path is.
  launch mariadb mariadbd --no-defaults --user="$(id -un)" --datadir="$home/mariadb" \
    --init-file="$home/init.sql" --bind-address=127.0.0.1 --port="$(port_for mariadb port)" \
    --tmpdir="$home" --socket=mariadb.sock --pid-file=mariadb.pid --skip-name-resolve --skip-log-bin
  wait_for mariadb mysql_ping
}

zookeepers() { # the number of ZooKeepers of this cluster; 0 before there are any
  cat "$home/zookeepers" 2>/dev/null || echo 0
}
zookeeper_address() {
  local i text=
  for ((i = 1; i <= $(zookeepers); i++)); do text+=,127.0.0.1:$(<"$home/zookeeper$i.port"); done
  echo "${text#,}"
}
zookeeper_serves() { # zookeeper_serves I: one of three serves once it has found the others
  (exec 3<>"/dev/tcp/127.0.0.1/$(<"$home/zookeeper$1.port")" && printf srvr >&3 &&
    timeout 1 grep -q '^Mode:' <&3) 2>/dev/null
}
configure_zookeeper() { # configure_zookeeper I: one that is alone has no peers
  local i folder=$home/zookeeper$1
  mkdir -p "$folder/data"
  echo "$1" >"$folder/data/myid"
  cat >"$folder/zoo.cfg" <<CFG
tickTime=1000
initLimit=20
syncLimit=5
dataDir=$folder/data
clientPort=$(<"$home/zookeeper$1.port")
clientPortAddress=127.0.0.1
admin.enableServer=false
4lw.commands.whitelist=ruok,srvr,mntr
CFG
  if [[ $(zookeepers) -gt 1 ]]; then
    for ((i = 1; i <= $(zookeepers); i++)); do
      echo "server.$i=127.0.0.1:$(<"$home/zookeeper$i.peer"):$(<"$home/zookeeper$i.election")"
    done >>"$folder/zoo.cfg"
  fi
  cat >"$folder/log4j.properties" <<'CFG'
log4j.rootLogger=WARN, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d{ISO8601} %-5p %c{1}: %m%n
CFG
}
start_zookeepers() {
  local i kind jars=/usr/share/java
  for ((i = 1; i <= $(zookeepers); i++)); do
    for kind in port peer election; do port_for "zookeeper$i" $kind >/dev/null; done
  done
  for ((i = 1; i <= $(zookeepers); i++)); do
    pid_of "zookeeper$i" >/dev/null && continue
    configure_zookeeper "$i"
    launch "zookeeper$i" java -Xmx256m \
      -cp "$home/zookeeper$i:$jars/zookeeper.jar:$jars/slf4j-log4j12.jar:$jars/log4j-1.2.jar" \
      org.apache.zookeeper.server.quorum.QuorumPeerMain "$home/zookeeper$i/zoo.cfg"
  done
  for ((i = 1; i <= $(zookeepers); i++)); do wait_for "zookeeper$i" zookeeper_serves "$i"; done
}
