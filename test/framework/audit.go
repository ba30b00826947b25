// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Request is one request to the API server, as recorded in its audit log.
type Request struct {
	Verb, Group, Resource, Subresource, Namespace, Name, User, Agent, URI string
	Code                                                                  int
	Received, Answered                                                    time.Time
	// Denied reports whether authorization rejected the request.
	Denied bool
}

func (r Request) String() string {
	resource := r.Resource
	if r.Subresource != "" {
		resource += "/" + r.Subresource
	}
	return fmt.Sprintf("%s %s %s: %d", r.Verb, resource, r.Name, r.Code)
}

// Writes reports whether the request's verb is a write, such as create or patch.
func (r Request) Writes() bool {
	switch r.Verb {
	case "get", "list", "watch":
		return false
	default:
		return true
	}
}

// Audit follows the API server's audit log from its creation on. The sandbox must have been started
// with --audit.
type Audit struct {
	cluster *Cluster
	log     auditTail
	agent   string
	// watches holds the IDs of the open watches.
	watches map[string]bool
	// leases is set if requests for leases are included.
	leases bool
}

// Audit starts to follow the requests of clients whose user agent begins with `agent`. It waits until
// the log has the requests that were answered before, which are not followed.
func (c *Cluster) Audit(t testing.TB, agent string) *Audit {
	t.Helper()
	a := &Audit{cluster: c, log: c.auditLog(), agent: agent, watches: map[string]bool{}}
	a.settle(t)
	info, err := os.Stat(a.log.path)
	if err != nil {
		t.Fatal(err)
	}
	a.log.offset = info.Size()
	t.Cleanup(a.log.close)
	return a
}

// settle waits until the log has all requests that have been answered so far, because the API
// server logs a request only after its response.
func (a *Audit) settle(t testing.TB) {
	t.Helper()
	info, err := os.Stat(a.log.path)
	if err != nil {
		t.Fatal(err)
	}
	mark := fmt.Sprintf("end-of-log-%d", time.Now().UnixNano())
	if err := a.cluster.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: mark}, &corev1.ConfigMap{}); !apierrors.IsNotFound(err) {
		return // The API server is down, or the test has ended, so no more lines will come.
	}
	added := auditTail{path: a.log.path, offset: info.Size()}
	defer added.close()
	complete := false
	Eventually(t, "the audit log has all answered requests", func() error {
		err := added.each(func(line string) error {
			complete = complete || strings.Contains(line, mark) && strings.Contains(line, `"ResponseComplete"`)
			return nil
		})
		if err == nil && !complete {
			err = errors.New("it does not have the last one yet")
		}
		return err
	})
}

// AuditLeases is [Cluster.Audit], but includes requests for leases.
func (c *Cluster) AuditLeases(t testing.TB, agent string) *Audit {
	t.Helper()
	a := c.Audit(t, agent)
	a.leases = true
	return a
}

// Requests returns the clients' requests that were answered since the last call. Requests for
// leases are left out because a leader renews its own lease all the time.
func (a *Audit) Requests(t testing.TB) []Request {
	t.Helper()
	a.settle(t)
	var requests []Request
	for _, e := range a.eventsOfAgent(t) {
		// A watch counts as answered when its stream begins, and any other request when it ends.
		if e.Stage == "ResponseStarted" || e.Stage == "ResponseComplete" && e.Verb != "watch" {
			requests = append(requests, e.Request)
		}
	}
	return requests
}

// OpenWatches returns, for each resource, the number of watches opened since the last call minus
// the number that ended. The API server also ends watches, for instance when a CRD becomes
// established, and clients then reopen them.
func (a *Audit) OpenWatches(t testing.TB) map[string]int {
	t.Helper()
	a.settle(t)
	open := map[string]int{}
	for _, e := range a.eventsOfAgent(t) {
		switch {
		case e.Verb != "watch":
		case e.Stage == "ResponseStarted":
			a.watches[e.ID] = true
			open[e.Resource]++
		case e.Stage == "ResponseComplete" && a.watches[e.ID]: // Watches that are not in a.watches belong to a manager that has exited.
			delete(a.watches, e.ID)
			open[e.Resource]--
		}
	}
	return open
}

// auditEvent is an event in the audit log: a request at a stage, such as ResponseComplete.
type auditEvent struct {
	Request
	ID, Stage string
}

// eventsOfAgent returns the followed clients' events that were added to the audit log since the
// last call, without requests for leases.
func (a *Audit) eventsOfAgent(t testing.TB) []auditEvent {
	t.Helper()
	all, err := a.events()
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(e auditEvent) bool {
		return !strings.HasPrefix(e.Agent, a.agent) || e.Resource == "leases" && !a.leases
	})
}

// events returns the events that were added to the audit log since the last call.
func (a *Audit) events() ([]auditEvent, error) {
	var events []auditEvent
	err := a.log.each(func(line string) error {
		// Most lines are from other clients, so do not decode them.
		if !strings.Contains(line, a.agent) {
			return nil
		}
		var logged struct {
			AuditID, Stage        string
			Verb                  string
			UserAgent, RequestURI string
			User                  struct{ Username string }
			ObjectRef             struct{ APIGroup, Resource, Subresource, Namespace, Name string }

			ResponseStatus           struct{ Code int }
			RequestReceivedTimestamp time.Time
			Annotations              map[string]string
			StageTimestamp           time.Time
		}
		if err := json.Unmarshal([]byte(line), &logged); err != nil {
			return fmt.Errorf("a line of the audit log: %w\n%s", err, line)
		}
		events = append(events, auditEvent{ID: logged.AuditID, Stage: logged.Stage, Request: Request{
			Verb: logged.Verb, Group: logged.ObjectRef.APIGroup, Resource: logged.ObjectRef.Resource, Subresource: logged.ObjectRef.Subresource,
			Namespace: logged.ObjectRef.Namespace, Name: logged.ObjectRef.Name,
			User: logged.User.Username, Agent: logged.UserAgent, URI: logged.RequestURI, Code: logged.ResponseStatus.Code, Received: logged.RequestReceivedTimestamp,
			Denied:   logged.Annotations["authorization.k8s.io/decision"] == "forbid",
			Answered: logged.StageTimestamp,
		}})
		return nil
	})
	return events, err
}

// auditLog returns the audit log of the API server, from its beginning.
func (c *Cluster) auditLog() auditTail { return auditTail{path: filepath.Join(c.Dir, "audit.log")} }
