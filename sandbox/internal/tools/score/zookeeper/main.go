// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Command zookeeper answers, on the address in the environment variable ADDRESS, the requests that the
// ZooKeeper operator sends to a ZooKeeper cluster. It keeps nodes in memory, for all members. Other
// requests than those to connect, to create, read and write a node, and to end are answered as
// unimplemented.
package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"path"
	"sync"

	"tidekeeper.dev/tidekeeper/sandbox/internal/tools/score/application"
)

func main() {
	t := &tree{nodes: map[string]*node{"/": {}}}
	application.Connections(func(connection net.Conn) { _ = t.serve(connection) })
}

// The operations and error codes of ZooKeeper's protocol.
const (
	opCreate, opExists, opGetData, opSetData, opPing, opClose = 1, 3, 4, 5, 11, -11

	errUnimplemented, errNoNode, errBadVersion, errNodeExists = -6, -101, -103, -110
)

// longest is the maximum length of a request in bytes.
const longest = 1 << 20

type node struct {
	data     []byte
	version  int32
	created  int64
	modified int64
	children int32
}

// tree holds the nodes, keyed by path, and the transaction ID of the last write.
type tree struct {
	mu    sync.Mutex
	nodes map[string]*node
	last  int64
}

// serve answers the requests on a connection until the client closes it.
func (t *tree) serve(connection net.Conn) error {
	in := bufio.NewReader(connection)
	if _, err := receive(in); err != nil {
		return err
	}
	// The answer to a connect request: protocol version, session timeout in milliseconds, session ID,
	// and a password of 16 bytes.
	var hello answer
	hello.int32(0)
	hello.int32(10_000)
	hello.int64(1)
	hello.buffer(make([]byte, 16))
	if err := hello.send(connection); err != nil {
		return err
	}
	for {
		text, err := receive(in)
		if err != nil {
			return err
		}
		q := &question{rest: text}
		number, operation := q.int32(), q.int32()
		var body answer
		code := t.do(operation, q, &body)
		if q.bad {
			return errors.New("a request is too short")
		}
		var reply answer
		reply.int32(number)
		reply.int64(t.transaction())
		reply.int32(code)
		reply.bytes = append(reply.bytes, body.bytes...)
		if err := reply.send(connection); err != nil || operation == opClose {
			return err
		}
	}
}

func (t *tree) transaction() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last
}

// do performs an operation, writes its result to body, and returns its error code, or 0.
func (t *tree) do(operation int32, q *question, body *answer) int32 {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch operation {
	case opPing, opClose:
		return 0
	case opCreate:
		name, data := q.text(), q.buffer()
		parent := t.nodes[path.Dir(name)]
		switch {
		case q.bad || parent == nil:
			return errNoNode
		case t.nodes[name] != nil:
			return errNodeExists
		}
		t.last++
		t.nodes[name] = &node{data: data, created: t.last, modified: t.last}
		parent.children++
		body.buffer([]byte(name))
	case opExists, opGetData:
		n := t.nodes[q.text()]
		if n == nil {
			return errNoNode
		}
		if operation == opGetData {
			body.buffer(n.data)
		}
		body.stat(n)
	case opSetData:
		n, data, version := t.nodes[q.text()], q.buffer(), q.int32()
		switch {
		case q.bad || n == nil:
			return errNoNode
		case version >= 0 && version != n.version:
			return errBadVersion
		}
		t.last++
		n.data, n.version, n.modified = data, n.version+1, t.last
		body.stat(n)
	default:
		return errUnimplemented
	}
	return 0
}

// receive reads a message, which is preceded by its length.
func receive(in io.Reader) ([]byte, error) {
	var length int32
	if err := binary.Read(in, binary.BigEndian, &length); err != nil {
		return nil, err
	}
	if length < 0 || length > longest {
		return nil, fmt.Errorf("a message of %d bytes", length)
	}
	text := make([]byte, length)
	_, err := io.ReadFull(in, text)
	return text, err
}

// question is the rest of a request. bad is set if it was too short.
type question struct {
	rest []byte
	bad  bool
}

func (q *question) take(n int) []byte {
	if n < 0 || n > len(q.rest) {
		q.bad = true
		return nil
	}
	taken := q.rest[:n]
	q.rest = q.rest[n:]
	return taken
}

func (q *question) int32() int32 {
	if b := q.take(4); b != nil {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}

// buffer returns bytes that are preceded by their length, which is -1 for none.
func (q *question) buffer() []byte {
	if n := q.int32(); n > 0 {
		return q.take(int(n))
	}
	return nil
}

func (q *question) text() string { return string(q.buffer()) }

// answer is a message to be sent.
type answer struct{ bytes []byte }

func (a *answer) int32(v int32) { a.bytes = binary.BigEndian.AppendUint32(a.bytes, uint32(v)) }
func (a *answer) int64(v int64) { a.bytes = binary.BigEndian.AppendUint64(a.bytes, uint64(v)) }

func (a *answer) buffer(b []byte) {
	a.int32(int32(len(b)))
	a.bytes = append(a.bytes, b...)
}

// stat writes the description of a node: the transactions of its creation and last change, their
// times, versions of data, children and access list, the owner of an ephemeral node, the length of the
// data, the number of children, and the transaction of their last change.
func (a *answer) stat(n *node) {
	for _, v := range []int64{n.created, n.modified, 0, 0} {
		a.int64(v)
	}
	for _, v := range []int32{n.version, 0, 0} {
		a.int32(v)
	}
	a.int64(0)
	a.int32(int32(len(n.data)))
	a.int32(n.children)
	a.int64(n.modified)
}

func (a *answer) send(to io.Writer) error {
	_, err := to.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(a.bytes))), a.bytes...))
	return err
}
