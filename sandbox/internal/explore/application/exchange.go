// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/observe"
	"tidekeeper.dev/tidekeeper/sandbox/internal/fault"
)

// exchange is a request of the operator on a connection, with the answer to it. Of protocols other
// than HTTP it begins with the first bytes that the operator sends after an answer.
type exchange struct {
	observe.Request
	// target is the path of an HTTP request with its query.
	target string
	// disturbed is the fault that hits the exchange, or nil.
	disturbed *Disturbed
	// answer is the answer so far, or the beginning of a long one. It is nil before the answer begins.
	answer []byte
	// replaced is set if the operator has received an earlier answer instead.
	replaced, logged bool
}

// requestLine is the first line of an HTTP request. statusLine is the first line of the response.
var (
	requestLine = regexp.MustCompile(`^([A-Z]+) (/\S*) HTTP/1\.[01]\r\n`)
	statusLine  = regexp.MustCompile(`^HTTP/1\.[01] (\d{3}) `)
)

// callOf returns the kind of a request to the named application, which begins with the given bytes,
// and the target of an HTTP request.
func callOf(application string, request []byte) (call observe.Call, target string) {
	call = observe.Call{Verb: observe.Exchange, Resource: application}
	if line := requestLine.FindSubmatch(request); line != nil {
		call.Verb, target = string(line[1]), string(line[2])
		call.Name, _, _ = strings.Cut(target, "?")
	}
	return call, target
}

// statusOf returns the status of an HTTP response that begins with the given bytes. It returns 200
// for other protocols.
func statusOf(answer []byte) int {
	line := statusLine.FindSubmatch(answer)
	if line == nil {
		return http.StatusOK
	}
	status, _ := strconv.Atoi(string(line[1])) // It has three digits.
	return status
}

// date matches the header of an HTTP response that differs although the answer is the same.
var date = regexp.MustCompile(`(?im)^Date: .*\r\n`)

// differ reports whether two answers to the same request differ.
func differ(a, b []byte) bool { return !bytes.Equal(date.ReplaceAll(a, nil), date.ReplaceAll(b, nil)) }

// mostAnswer is the maximum number of bytes of an answer that are stored, to send it again.
const mostAnswer = 1 << 20

// conversation passes on the bytes of a connection, and divides them into exchanges.
type conversation struct {
	of       *Applications
	name     string // the name of the application
	operator *net.TCPConn
	to       net.Conn

	mu sync.Mutex
	// current is the latest exchange, or nil if the operator has sent nothing yet.
	current *exchange
}

// Pass passes on the bytes of a connection of the operator to the named application until its end. It
// logs the requests, and injects the fault in force.
func (a *Applications) Pass(name string, operator *net.TCPConn, to net.Conn) {
	c := &conversation{of: a, name: name, operator: operator, to: to}
	done := make(chan bool, 2)
	go func() { done <- pass(c.operator, c.to, c.request); c.stopped() }()
	go func() { done <- pass(c.to, c.operator, c.answer) }()
	// Wait for both directions, because one side may still send after the other has closed its sending
	// half. After an error, close both connections immediately.
	for range cap(done) {
		if !<-done {
			break
		}
	}
	_, _ = c.operator.Close(), c.to.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.complete()
}

// pass passes on bytes until the end of `from`, through a function that may change them or end the
// connection. It returns false if the connection has failed, or has been ended.
func pass(from, to net.Conn, through func([]byte) ([]byte, bool)) bool {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			data, on := through(buffer[:n])
			if !on {
				return false
			}
			if _, err := to.Write(data); err != nil {
				return false
			}
		}
		if err != nil {
			half, is := to.(*net.TCPConn)
			return errors.Is(err, io.EOF) && is && half.CloseWrite() == nil
		}
	}
}

// request handles bytes from the operator. It returns false if the connection ends.
func (c *conversation) request(data []byte) ([]byte, bool) {
	c.mu.Lock()
	if c.current != nil && c.current.answer == nil {
		c.mu.Unlock()
		return data, true // more of the same request
	}
	c.complete()
	e := &exchange{}
	call, target := callOf(c.name, data)
	e.Time, e.Verb, e.Resource, e.Name, e.target = time.Now(), call.Verb, call.Resource, call.Name, target
	e.disturbed = c.of.disturbs(call)
	c.current = e
	c.mu.Unlock()
	if e.disturbed == nil {
		return data, true
	}
	switch e.disturbed.Fault.Kind {
	case fault.Close:
		e.disturbed.fire()
		return nil, c.end()
	case fault.Hang:
		e.disturbed.fire()
		<-e.disturbed.removed
		return nil, c.end()
	case fault.Delay:
		e.disturbed.fire()
		select {
		case <-time.After(time.Duration(e.disturbed.Fault.For)):
		case <-e.disturbed.removed:
		}
	}
	return data, true
}

// answer handles bytes from the application. It returns false if the connection ends.
func (c *conversation) answer(data []byte) ([]byte, bool) {
	c.mu.Lock()
	e := c.current
	if e == nil {
		c.mu.Unlock()
		return data, true // the application speaks first
	}
	first := e.answer == nil
	if len(e.answer) <= mostAnswer {
		e.answer = append(e.answer, data...)
	}
	if !first {
		defer c.mu.Unlock()
		c.of.store(e)
		if e.replaced {
			return nil, true
		}
		return data, true
	}
	e.Upstream = statusOf(data)
	before := c.of.earlier(e)
	c.of.store(e)
	if before != nil && !differ(before, data) {
		before = nil
	}
	kind := fault.Kind("")
	if e.disturbed != nil {
		kind = e.disturbed.Fault.Kind
	}
	switch kind {
	case fault.LoseAnswer, fault.HangAnswer:
	case fault.Stale:
		e.replaced = before != nil
		fallthrough
	default:
		e.Status, e.Older = e.Upstream, before != nil
		if e.replaced {
			e.Status, data = statusOf(before), before
		}
	}
	c.log(e)
	c.mu.Unlock()
	switch kind {
	case fault.LoseAnswer:
		e.disturbed.fire()
		return nil, c.end()
	case fault.HangAnswer:
		e.disturbed.fire()
		select {
		case <-e.disturbed.removed:
		case <-e.disturbed.GaveUp:
		}
		return nil, c.end()
	case fault.Stale:
		e.disturbed.fire()
	}
	return data, true
}

// end makes the end of the connection a reset for the operator. It returns false.
func (c *conversation) end() bool {
	_ = c.operator.SetLinger(0)
	return false
}

// stopped notes that the operator sends nothing more, so that it no longer waits for an answer that
// a fault holds back.
func (c *conversation) stopped() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current != nil && c.current.disturbed != nil {
		c.current.disturbed.giveUp()
	}
}

// complete logs the current exchange, if it had no answer. The caller must hold c.mu.
func (c *conversation) complete() {
	if c.current != nil {
		c.log(c.current)
	}
}

// log adds an exchange to the log of requests, once. The caller must hold c.mu.
func (c *conversation) log(e *exchange) {
	if e.logged {
		return
	}
	e.logged, e.Seconds = true, time.Since(e.Time).Seconds()
	if e.disturbed != nil {
		e.Rule, e.Fault = e.disturbed.Rule, e.disturbed.Fault.Kind
	}
	c.of.log.Add(&e.Request)
}
