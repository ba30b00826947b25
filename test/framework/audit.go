// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
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

// Request is a request in the API server's audit log.
type Request struct {
	Verb, Group, Resource, Subresource, Namespace, Name, User, Agent, URI string
	Code                                                                  int
	Received, Answered                                                    time.Time
	// Denied reports whether the client was not authorized.
	Denied bool
}

func (r Request) String() string {
	resource := r.Resource
	if r.Subresource != "" {
		resource += "/" + r.Subresource
	}
	return fmt.Sprintf("%s %s %s: %d", r.Verb, resource, r.Name, r.Code)
}

// Writes reports whether the request is a write.
func (r Request) Writes() bool {
	switch r.Verb {
	case "get", "list", "watch":
		return false
	default:
		return true
	}
}

// Audit follows the audit log from the moment of its creation. The sandbox must have
// been started with --audit.
type Audit struct {
	cluster *Cluster
	path    string
	offset  int64
	agent   string
	// watches are the ids of the watches that are open.
	watches map[string]bool
	// leases includes requests for leases.
	leases bool
}

// Audit starts to follow the requests of clients whose user agent has this prefix.
func (c *Cluster) Audit(t testing.TB, agent string) *Audit {
	t.Helper()
	a := &Audit{cluster: c, path: filepath.Join(c.Dir, "audit.log"), agent: agent, watches: map[string]bool{}}
	info, err := os.Stat(a.path)
	if err != nil {
		t.Fatal(err)
	}
	a.offset = info.Size()
	return a
}

// settle waits until the log has all requests that were answered by now: a line is
// written after the response.
func (a *Audit) settle(t testing.TB) {
	t.Helper()
	info, err := os.Stat(a.path)
	if err != nil {
		t.Fatal(err)
	}
	mark := fmt.Sprintf("end-of-log-%d", time.Now().UnixNano())
	if err := a.cluster.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: mark}, &corev1.ConfigMap{}); !apierrors.IsNotFound(err) {
		return // The API server is down, or the test has ended: no more lines will come.
	}
	Eventually(t, "the audit log has all answered requests", func() error {
		file, err := os.Open(a.path)
		if err != nil {
			return err
		}
		defer file.Close()
		added, err := io.ReadAll(io.NewSectionReader(file, info.Size(), math.MaxInt64-info.Size()))
		for line := range bytes.Lines(added) {
			if bytes.Contains(line, []byte(mark)) && bytes.Contains(line, []byte(`"ResponseComplete"`)) && bytes.HasSuffix(line, []byte("\n")) {
				return nil
			}
		}
		return cmp.Or(err, errors.New("it does not have the last one yet"))
	})
}

// AuditLeases is [Cluster.Audit], but includes requests for leases.
func (c *Cluster) AuditLeases(t testing.TB, agent string) *Audit {
	t.Helper()
	a := c.Audit(t, agent)
	a.leases = true
	return a
}

// Requests returns the clients' requests since the last call that have been answered
// by now. Leases are left out, as a leader always renews its own.
func (a *Audit) Requests(t testing.TB) []Request {
	t.Helper()
	a.settle(t)
	var requests []Request
	for _, e := range a.eventsOfAgent(t) {
		// A watch is answered when its stream begins; all other requests when they end.
		if e.Stage == "ResponseStarted" || e.Stage == "ResponseComplete" && e.Verb != "watch" {
			requests = append(requests, e.Request)
		}
	}
	return requests
}

// OpenWatches returns how many watches of each resource the clients have opened since
// the last call and that have not ended. The API server ends watches, too, for
// instance when a CRD becomes established, and clients then open them again.
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
		case e.Stage == "ResponseComplete" && a.watches[e.ID]: // Others were open before, of a manager that has ended.
			delete(a.watches, e.ID)
			open[e.Resource]--
		}
	}
	return open
}

// auditEvent is an event of the audit log: a request at a stage, such as ResponseComplete.
type auditEvent struct {
	Request
	ID, Stage string
}

// eventsOfAgent returns the events of the followed clients that were added to the audit log since
// the last call, without requests for leases.
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
	file, err := os.Open(a.path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if _, err := file.Seek(a.offset, io.SeekStart); err != nil {
		return nil, err
	}
	var events []auditEvent
	reader := bufio.NewReader(file)
	for {
		line, err := reader.ReadString('\n')
		if err == io.EOF {
			// The rest of a line that is still being written is read next time.
			return events, nil
		}
		if err != nil {
			return nil, err
		}
		a.offset += int64(len(line))
		// Most lines are from other clients: do not decode them.
		if !strings.Contains(line, a.agent) {
			continue
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
			return nil, fmt.Errorf("a line of the audit log: %w\n%s", err, line)
		}
		events = append(events, auditEvent{ID: logged.AuditID, Stage: logged.Stage, Request: Request{
			Verb: logged.Verb, Group: logged.ObjectRef.APIGroup, Resource: logged.ObjectRef.Resource, Subresource: logged.ObjectRef.Subresource,
			Namespace: logged.ObjectRef.Namespace, Name: logged.ObjectRef.Name,
			User: logged.User.Username, Agent: logged.UserAgent, URI: logged.RequestURI, Code: logged.ResponseStatus.Code, Received: logged.RequestReceivedTimestamp,
			Denied:   logged.Annotations["authorization.k8s.io/decision"] == "forbid",
			Answered: logged.StageTimestamp,
		}})
	}
}
