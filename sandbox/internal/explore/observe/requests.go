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

// Request is a request of the operator to the API server, as logged by the proxy, or to an application
// (see ToApplication).
type Request proxy.Entry

// Exchange is the verb of a request to an application by another protocol than HTTP. The verb of an
// HTTP request is its method, which is in upper case, too.
const Exchange = "SEND"

// ToApplication reports whether a request was sent to an application instead of the API server.
// Resource is then the name of the application, and Name is the path of an HTTP request. Status and
// Upstream are the status of the answer, or 200 if the protocol is not HTTP.
func (r *Request) ToApplication() bool { return Call{Verb: r.Verb}.ToApplication() }

// Election lists the resources used for leader election. unheeded lists the Event resources, to
// which no client reacts. Requests for resources in either list do not count as the operator's work
// on objects.
var (
	Election = []string{"leases.coordination.k8s.io"}
	unheeded = []string{"events", "events.events.k8s.io"}
	// questions lists review resources, whose requests return an answer and change nothing.
	questions = []string{
		"tokenreviews.authentication.k8s.io", "subjectaccessreviews.authorization.k8s.io",
		"selfsubjectaccessreviews.authorization.k8s.io", "localsubjectaccessreviews.authorization.k8s.io",
		"selfsubjectrulesreviews.authorization.k8s.io", "selfsubjectreviews.authentication.k8s.io",
	}
)

// readVerbs lists the verbs of reads, except for plain watches. "watchlist" is a watch that begins
// with a list.
var readVerbs = []string{"get", "list", "watchlist"}

// WriteVerbs lists the verbs of requests that change objects.
var WriteVerbs = []string{"create", "update", "patch", "delete", "deletecollection"}

// Writes reports whether a request writes objects to which other clients may react. It excludes
// leader election: Leases, and the objects whose keys are in `locks`.
func (r *Request) Writes(locks map[string]bool) bool {
	return slices.Contains(WriteVerbs, r.Verb) && r.matters(locks)
}

// reads reports whether a request gets or lists objects, or starts a watch that begins with a list.
// It excludes requests for Events, reviews and leader election. `locks` is the set of keys of
// objects used for leader election.
func (r *Request) reads(locks map[string]bool) bool {
	return slices.Contains(readVerbs, r.Verb) && r.matters(locks)
}

// Polls reports whether a request is a get or list, which a client without watches sends again and
// again. Unlike reads, it includes Events and reviews, and excludes watches that begin with a list.
// It excludes Leases, and the objects whose keys are in `locks`, because they are used for leader
// election.
func (r *Request) Polls(locks map[string]bool) bool {
	return (r.Verb == "get" || r.Verb == "list") && r.Resource != "" && !slices.Contains(Election, r.Resource) && !locks[NameKey(r.Resource, r.Namespace, r.Name)]
}

// matters reports whether a request concerns objects other than Events, reviews, and objects used
// for leader election: Leases, and the objects whose keys are in `locks`.
func (r *Request) matters(locks map[string]bool) bool {
	resource, _, _ := strings.Cut(r.Resource, "/")
	return r.Event == "" && !slices.Contains(Election, resource) && !slices.Contains(unheeded, resource) && !slices.Contains(questions, resource) &&
		!locks[r.Resource+" "+r.Namespace+"/"+r.Name]
}

// Succeeded reports whether the API server carried out the request. A fault may have replaced the
// status that the operator received.
func (r *Request) Succeeded() bool { return r.Upstream >= 200 && r.Upstream < 300 }

// DeletesNothing reports whether the request is a deletion that failed because the object is
// missing.
func (r *Request) DeletesNothing() bool {
	return r.Verb == "delete" && r.Upstream == http.StatusNotFound
}

// String formats the request as a line.
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

// Log parses the proxy's log and stores the requests.
type Log struct {
	mu       sync.Mutex
	requests []Request
	// forgotten is the number of requests that Forget has removed from the list requests. kept
	// lists the removed requests that are kept as examples, one of each kind.
	forgotten int
	kept      []Request
	locks     map[string]bool
	// Habits decides which rejected writes count as activity, and not as recurring rejections in a
	// quiet cluster.
	Habits *Habits
}

// Write parses a line of the proxy's log.
func (l *Log) Write(line []byte) (int, error) {
	var r Request
	if err := json.Unmarshal(bytes.TrimSpace(line), &r); err != nil {
		return len(line), nil // The proxy writes only valid entries, so this cannot happen.
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requests = append(l.requests, r)
	if r.Writes(l.locks) && l.Habits != nil {
		l.Habits.wrote(&r, time.Now())
	}
	return len(line), nil
}

// Add adds a request to an application.
func (l *Log) Add(r *Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requests = append(l.requests, *r)
}

// AddLock adds the key of an object other than a Lease that is used for leader election.
func (l *Log) AddLock(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.locks == nil {
		l.locks = map[string]bool{}
	}
	l.locks[key] = true
}

// Since returns the requests from index n on, sorted by time. The index of a request is the number
// of requests logged before it, including forgotten requests.
func (l *Log) Since(n int) []Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	requests := slices.Clone(l.requests[min(max(n-l.forgotten, 0), len(l.requests)):])
	if n < l.forgotten {
		requests = slices.Concat(l.kept, requests)
	}
	slices.SortStableFunc(requests, func(a, b Request) int { return a.Time.Compare(b.Time) })
	return requests
}

// Len returns the number of requests logged so far, including forgotten requests.
func (l *Log) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.forgotten + len(l.requests)
}

// Forget discards all requests logged so far, to limit the memory of a long run. Of the requests
// for which `keep` returns true, it keeps one of each kind of call and response. The indexes of
// later requests do not change.
func (l *Log) Forget(keep func(*Request) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	type kind struct {
		call   Call
		path   string
		status int
	}
	known := map[kind]bool{}
	var kept []Request
	for _, r := range slices.Concat(l.kept, l.requests) {
		of := kind{Call{Verb: r.Verb, Resource: r.Resource, Namespace: r.Namespace, Name: r.Name}, r.Path, r.Upstream}
		if r.Event == "" && !known[of] && keep(&r) {
			known[of] = true
			kept = append(kept, r)
		}
	}
	l.forgotten += len(l.requests)
	l.kept, l.requests = kept, nil
}

// Call identifies a kind of request by verb and object, so that requests of different runs can be
// matched.
type Call struct {
	Verb     string `json:"verb"`
	Resource string `json:"resource"`
	// Namespace is empty for cluster-scoped resources. Name is empty if it differs from run to run.
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
}

// ToApplication reports whether requests of this kind are sent to an application instead of the API
// server.
func (c Call) ToApplication() bool { return c.Verb != "" && c.Verb == strings.ToUpper(c.Verb) }

func (c Call) String() string {
	name := strings.TrimPrefix(c.Namespace+"/"+c.Name, "/")
	if c.Name == "" {
		return strings.TrimSpace(fmt.Sprintf("%s %s %s", c.Verb, c.Resource, c.Namespace))
	}
	return fmt.Sprintf("%s %s %s", c.Verb, c.Resource, name)
}

// CallOf returns the kind of a request. It includes the name only if the object's key is in
// `stable`, the set of keys that occur in all baseline runs.
func CallOf(r *Request, stable map[string]bool) Call {
	c := Call{Verb: r.Verb, Resource: r.Resource, Namespace: r.Namespace}
	if stable[NameKey(r.Resource, r.Namespace, r.Name)] {
		c.Name = r.Name
	}
	return c
}

// NameKey returns an object's key, like "pods default/web". It ignores a subresource, as in
// pods/status.
func NameKey(resource, namespace, name string) string {
	main, _, _ := strings.Cut(resource, "/")
	return main + " " + namespace + "/" + name
}

// LockKeys returns the keys added by AddLock.
func (l *Log) LockKeys() map[string]bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	keys := make(map[string]bool, len(l.locks))
	for key := range l.locks {
		keys[key] = true
	}
	return keys
}
