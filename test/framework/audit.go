// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Request is one request as the API server's audit log tells it.
type Request struct {
	Verb, Resource, Subresource, Name, User, Agent string
	Code                                           int
	Received                                       time.Time
}

func (r Request) String() string {
	resource := r.Resource
	if r.Subresource != "" {
		resource += "/" + r.Subresource
	}
	return fmt.Sprintf("%s %s %s: %d", r.Verb, resource, r.Name, r.Code)
}

// Writes tells whether the request changes something.
func (r Request) Writes() bool {
	switch r.Verb {
	case "get", "list", "watch":
		return false
	default:
		return true
	}
}

// Audit follows the audit log from the moment it is made. The sandbox must
// have been started with --audit.
type Audit struct {
	path   string
	offset int64
	agent  string
}

// Audit begins to follow the requests of clients whose user agent begins so.
func (c *Cluster) Audit(t testing.TB, agent string) *Audit {
	t.Helper()
	a := &Audit{path: filepath.Join(c.Dir, "audit.log"), agent: agent}
	info, err := os.Stat(a.path)
	if err != nil {
		t.Fatal(err)
	}
	a.offset = info.Size()
	return a
}

// Requests returns what the clients have asked for since the last call, leases
// left out: they are how a leader lives.
func (a *Audit) Requests(t testing.TB) []Request {
	t.Helper()
	file, err := os.Open(a.path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.Seek(a.offset, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	var requests []Request
	reader := bufio.NewReader(file)
	for {
		line, err := reader.ReadString('\n')
		if err == io.EOF {
			// The rest of a line that is still being written comes next time.
			return requests
		}
		if err != nil {
			t.Fatal(err)
		}
		a.offset += int64(len(line))
		var event struct {
			Stage     string
			Verb      string
			UserAgent string
			User      struct{ Username string }
			ObjectRef struct{ Resource, Subresource, Name string }

			ResponseStatus           struct{ Code int }
			RequestReceivedTimestamp time.Time
		}
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			t.Fatalf("a line of the audit log: %v\n%s", err, line)
		}
		// A watch has answered when its stream begins; all else when it ends.
		stage := "ResponseComplete"
		if event.Verb == "watch" {
			stage = "ResponseStarted"
		}
		if event.Stage != stage || !strings.HasPrefix(event.UserAgent, a.agent) || event.ObjectRef.Resource == "leases" {
			continue
		}
		requests = append(requests, Request{
			Verb: event.Verb, Resource: event.ObjectRef.Resource, Subresource: event.ObjectRef.Subresource, Name: event.ObjectRef.Name,
			User: event.User.Username, Agent: event.UserAgent, Code: event.ResponseStatus.Code, Received: event.RequestReceivedTimestamp,
		})
	}
}
