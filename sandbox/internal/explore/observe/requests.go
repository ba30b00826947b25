// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"tidekeeper.dev/tidekeeper/sandbox/internal/proxy"
)

// Request is a request of the operator, as the proxy logs it.
type Request proxy.Entry

// Election are the resources of leader election, and unheeded are events, which no client acts
// on. Neither counts as work.
var (
	Election = []string{"leases.coordination.k8s.io"}
	unheeded = []string{"events", "events.events.k8s.io"}
	// questions are reviews, which are answered at once and change nothing.
	questions = []string{
		"tokenreviews.authentication.k8s.io", "subjectaccessreviews.authorization.k8s.io",
		"selfsubjectaccessreviews.authorization.k8s.io", "localsubjectaccessreviews.authorization.k8s.io",
		"selfsubjectrulesreviews.authorization.k8s.io", "selfsubjectreviews.authentication.k8s.io",
	}
)

// readVerbs are the verbs of reads other than watches. A watchlist is a watch that begins with
// a list.
var readVerbs = []string{"get", "list", "watchlist"}

// WriteVerbs are the verbs of requests that change objects.
var WriteVerbs = []string{"create", "update", "patch", "delete", "deletecollection"}

// Writes reports whether a request writes objects that other clients may act on. Writes for
// leader election do not count.
func (r *Request) Writes(locks map[string]bool) bool {
	return slices.Contains(WriteVerbs, r.Verb) && r.matters(locks)
}

// reads reports whether a request gets or lists objects. Events, watches and reads for leader
// election do not count.
func (r *Request) reads(locks map[string]bool) bool {
	return slices.Contains(readVerbs, r.Verb) && r.matters(locks)
}

// Polls reports whether a request gets or lists objects, such as in a loop. Reads for leader
// election do not count.
func (r *Request) Polls(locks map[string]bool) bool {
	return (r.Verb == "get" || r.Verb == "list") && r.Resource != "" && !slices.Contains(Election, r.Resource) && !locks[NameKey(r.Resource, r.Namespace, r.Name)]
}

// matters reports whether a request is for objects other than events, reviews, and the objects
// of leader election.
func (r *Request) matters(locks map[string]bool) bool {
	resource, _, _ := strings.Cut(r.Resource, "/")
	return r.Event == "" && !slices.Contains(Election, resource) && !slices.Contains(unheeded, resource) && !slices.Contains(questions, resource) &&
		!locks[r.Resource+" "+r.Namespace+"/"+r.Name]
}

// Succeeded reports whether the API server carried out the request, whatever status the
// operator received.
func (r *Request) Succeeded() bool { return r.Upstream >= 200 && r.Upstream < 300 }

// DeletesNothing reports whether the request was to delete a missing object.
func (r *Request) DeletesNothing() bool {
	return r.Verb == "delete" && r.Upstream == http.StatusNotFound
}

// String describes the request in a line.
func (r *Request) String() string {
	text := r.Verb + " " + r.Resource
	if r.Name != "" || r.Namespace != "" {
		text += " " + strings.TrimPrefix(r.Namespace+"/"+r.Name, "/")
	}
	switch {
	case r.Event != "":
		text = fmt.Sprintf("event %s of %s %s", r.Event, r.Resource, strings.TrimPrefix(r.Namespace+"/"+r.Name, "/"))
	case r.Upstream == 0 && r.Status == 0:
		text += ": not sent"
	case r.Upstream != r.Status:
		text += fmt.Sprintf(": %s, and the operator was answered %s", code(r.Upstream), code(r.Status))
	default:
		text += fmt.Sprintf(": %d", r.Status)
	}
	if r.Fault != "" {
		text += " [" + string(r.Fault) + "]"
	}
	return text
}

func code(status int) string {
	if status == 0 {
		return "nothing"
	}
	return fmt.Sprint(status)
}

// Log parses and keeps the log of the proxy, as the writer of that log.
type Log struct {
	mu       sync.Mutex
	requests []Request
	locks    map[string]bool
	// Habits decides which refused writes count as activity.
	Habits *Habits
}

// Write parses a line of the log.
func (l *Log) Write(line []byte) (int, error) {
	var r Request
	if err := json.Unmarshal(bytes.TrimSpace(line), &r); err != nil {
		return len(line), nil // The proxy writes only requests.
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requests = append(l.requests, r)
	if r.Writes(l.locks) && l.Habits != nil {
		l.Habits.wrote(&r, time.Now())
	}
	return len(line), nil
}

// AddLock adds the key of an object, other than a Lease, that the operator uses for leader
// election.
func (l *Log) AddLock(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.locks == nil {
		l.locks = map[string]bool{}
	}
	l.locks[key] = true
}

// Since returns the requests from index n on, sorted by time.
func (l *Log) Since(n int) []Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	requests := slices.Clone(l.requests[min(n, len(l.requests)):])
	slices.SortStableFunc(requests, func(a, b Request) int { return a.Time.Compare(b.Time) })
	return requests
}

// Len returns the number of requests so far.
func (l *Log) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.requests)
}

// Call identifies a kind of request, across runs.
type Call struct {
	Verb     string `json:"verb"`
	Resource string `json:"resource"`
	// Namespace and Name are empty if they differ from run to run.
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
}

func (c Call) String() string {
	name := strings.TrimPrefix(c.Namespace+"/"+c.Name, "/")
	if c.Name == "" {
		return strings.TrimSpace(fmt.Sprintf("%s %s %s", c.Verb, c.Resource, c.Namespace))
	}
	return fmt.Sprintf("%s %s %s", c.Verb, c.Resource, name)
}

// CallOf returns the kind of a request. The name is left out if stable does not contain the
// object; stable are the keys that occur in all baseline runs.
func CallOf(r *Request, stable map[string]bool) Call {
	c := Call{Verb: r.Verb, Resource: r.Resource, Namespace: r.Namespace}
	if stable[NameKey(r.Resource, r.Namespace, r.Name)] {
		c.Name = r.Name
	}
	return c
}

// NameKey returns the key of an object; a subresource is ignored.
func NameKey(resource, namespace, name string) string {
	main, _, _ := strings.Cut(resource, "/")
	return main + " " + namespace + "/" + name
}

// LockKeys returns the keys of the objects, other than Leases, that the operator uses for
// leader election.
func (l *Log) LockKeys() map[string]bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	keys := make(map[string]bool, len(l.locks))
	for key := range l.locks {
		keys[key] = true
	}
	return keys
}
