// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Command redis answers, on the address in the environment variable ADDRESS, the requests that the Redis
// operator by Spotahome sends to a Redis server or to a Sentinel. One process stands for one Redis server,
// or for all Sentinels of a group, which always agree. As with the configuration file of the operator,
// a server begins as a replica of 127.0.0.1, and a Sentinel watches 127.0.0.1. Simplifications: a server
// keeps its role when its pod is replaced, replication is always complete, Sentinels never elect a master,
// any password is right, and any configuration is accepted.
package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"

	"tidekeeper.dev/tidekeeper/sandbox/internal/tools/score/application"
)

func main() {
	s := &server{master: "127.0.0.1", port: "6379", watched: "127.0.0.1", watchedPort: "6379"}
	application.Connections(s.serve)
}

// server is a Redis server, of which master is empty if it is one itself, or the Sentinels, which watch
// the master at watched.
type server struct {
	mu                   sync.Mutex
	master, port         string
	watched, watchedPort string
}

// serve answers the requests on a connection until the client closes it.
func (s *server) serve(connection net.Conn) {
	in := bufio.NewReader(connection)
	for {
		request, err := receive(in)
		if err != nil {
			return
		}
		if _, err := io.WriteString(connection, s.answer(request)); err != nil {
			return
		}
	}
}

// answer does what a request says, and returns the reply as it is sent.
func (s *server) answer(request []string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	argument := func(i int) string {
		if i < len(request) {
			return request[i]
		}
		return ""
	}
	switch verb := strings.ToLower(argument(0)); verb {
	case "ping":
		return "+PONG\r\n"
	case "info":
		if argument(1) == "sentinel" {
			return bulk("# Sentinel\r\nsentinel_masters:1\r\nmaster0:name=mymaster,status=ok,address=" + net.JoinHostPort(s.watched, s.watchedPort) + ",slaves=2,sentinels=3\r\n")
		}
		return bulk(s.replication())
	case "slaveof", "replicaof":
		s.master, s.port = argument(1), argument(2)
		if strings.EqualFold(s.master, "no") {
			s.master = ""
		}
		return "+OK\r\n"
	case "auth", "select", "config", "quit":
		return "+OK\r\n"
	case "sentinel":
		return s.sentinel(strings.ToLower(argument(1)), argument(3), argument(4))
	default:
		return "-ERR unknown command '" + verb + "'\r\n"
	}
}

// sentinel does what a request to a Sentinel says.
func (s *server) sentinel(verb, host, port string) string {
	switch verb {
	case "monitor":
		s.watched, s.watchedPort = host, port
		return "+OK\r\n"
	case "remove", "set":
		return "+OK\r\n"
	case "reset":
		return ":1\r\n"
	case "ckquorum":
		return "+OK 3 usable Sentinels. Quorum and failover authorization can be reached\r\n"
	case "master":
		return "*6\r\n" + bulk("name") + bulk("mymaster") + bulk("ip") + bulk(s.watched) + bulk("port") + bulk(s.watchedPort)
	default:
		return "-ERR unknown subcommand '" + verb + "'\r\n"
	}
}

func (s *server) replication() string {
	if s.master == "" {
		return "# Replication\r\nrole:master\r\nconnected_slaves:2\r\n"
	}
	return "# Replication\r\nrole:slave\r\nmaster_host:" + s.master + "\r\nmaster_port:" + s.port + "\r\nmaster_link_status:up\r\nmaster_sync_in_progress:0\r\n"
}

func bulk(text string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(text), text) }

// receive reads a request: an array of texts.
func receive(in *bufio.Reader) ([]string, error) {
	n, err := number(in, '*')
	if err != nil {
		return nil, err
	}
	var request []string
	for range n {
		length, err := number(in, '$')
		if err != nil {
			return nil, err
		}
		text := make([]byte, length+2) // with the end of the line
		if _, err := io.ReadFull(in, text); err != nil {
			return nil, err
		}
		request = append(request, string(text[:length]))
	}
	return request, nil
}

// number reads a line with a number after the character that says its kind.
func number(in *bufio.Reader, kind byte) (int, error) {
	line, err := in.ReadString('\n')
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(strings.TrimSpace(line[1:]))
	if err != nil || line[0] != kind || n < 0 || n > 1<<20 {
		return 0, fmt.Errorf("not a request: %q", line)
	}
	return n, nil
}
