// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"

	"tidekeeper.dev/tidekeeper/sandbox/internal/fault"
	"tidekeeper.dev/tidekeeper/sandbox/internal/socket"
)

// listenControl listens on the Unix socket of the proxy's control API. Unlike a TCP port, the
// socket is inaccessible to other users and to web pages. If a killed proxy has left its socket
// behind, listenControl replaces this socket.
func listenControl(path string) (net.Listener, error) {
	if connection, err := (&net.Dialer{}).DialContext(context.Background(), "unix", path); err == nil {
		_ = connection.Close()
		return nil, fmt.Errorf("a process listens on %s already", path)
	} else if info, left := os.Lstat(path); errors.Is(err, syscall.ECONNREFUSED) && left == nil && info.Mode().Type() == fs.ModeSocket {
		_ = os.Remove(path)
	}
	return socket.Listen(context.Background(), path)
}

// controlAPI serves the HTTP API that changes a proxy's rules, and lists, cuts and freezes its
// watches.
type controlAPI struct {
	rules   *fault.RuleSet
	catalog *catalog
	streams *streams
	// crashes is set if the proxy can crash and restart its client.
	crashes bool
}

// handler returns the control API's HTTP handler. It responds to invalid rules with plain text, one
// mistake per line.
func (c *controlAPI) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /rules", func(w http.ResponseWriter, _ *http.Request) {
		rules, _ := c.rules.List()
		reply(w, http.StatusOK, map[string]any{"rules": rules})
	})
	mux.HandleFunc("POST /rules", c.addRules)
	mux.HandleFunc("DELETE /rules", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, map[string]int{"removed": c.rules.RemoveFunc(func(fault.Rule) bool { return true })})
	})
	mux.HandleFunc("GET /rules/{name}", c.rule)
	mux.HandleFunc("DELETE /rules/{name}", func(w http.ResponseWriter, r *http.Request) {
		if !c.rules.Remove(r.PathValue("name")) {
			noRule(w, r)
			return
		}
		reply(w, http.StatusOK, map[string]int{"removed": 1})
	})
	mux.HandleFunc("GET /watches", c.listWatches)
	mux.HandleFunc("POST /cut", c.cut)
	mux.HandleFunc("POST /freeze", c.freeze)
	mux.HandleFunc("POST /thaw", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, map[string]int{"removed": c.rules.RemoveFunc(func(r fault.Rule) bool { return r.Fault.Kind == fault.Freeze })})
	})
	return mux
}

// possible returns an error if any of the rules has the Crash fault, unless `crashes` is set: only
// a proxy that has started its client can crash and restart it.
func possible(rules []fault.Rule, crashes bool) error {
	for _, rule := range rules {
		if rule.Fault.Kind == fault.Crash && !crashes {
			return fmt.Errorf("rule %q: Crash needs a program that the proxy has started: sandbox proxy ... -- PROGRAM", rule.Name)
		}
	}
	return nil
}

func (c *controlAPI) addRules(w http.ResponseWriter, r *http.Request) {
	text, ok := body(w, r)
	if !ok {
		return
	}
	rules, err := fault.Parse(text)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if err := possible(rules, c.crashes); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c.add(w, rules...)
}

func (c *controlAPI) add(w http.ResponseWriter, rules ...fault.Rule) {
	if err := c.rules.Add(rules...); err != nil {
		http.Error(w, err.Error(), http.StatusConflict)
		return
	}
	added := map[string]any{"rules": rules}
	if warnings := c.catalog.warnings(rules); len(warnings) > 0 {
		added["warnings"] = warnings
	}
	reply(w, http.StatusCreated, added)
}

// rule responds with a rule, after waiting until the rule has injected its fault as often as the
// query parameter `fired` specifies (0 by default). The query parameter `timeout` limits the wait
// (30 s by default).
func (c *controlAPI) rule(w http.ResponseWriter, r *http.Request) {
	wanted, timeout := 0, 30*time.Second
	var err error
	if text := r.FormValue("fired"); text != "" {
		if wanted, err = strconv.Atoi(text); err != nil {
			http.Error(w, fmt.Sprintf("fired %q: want a number", text), http.StatusBadRequest)
			return
		}
	}
	if text := r.FormValue("timeout"); text != "" {
		if timeout, err = time.ParseDuration(text); err != nil {
			http.Error(w, fmt.Sprintf("timeout %q: want a duration like 30s", text), http.StatusBadRequest)
			return
		}
	}
	over := time.After(timeout)
	for {
		rules, changed := c.rules.List()
		i := slices.IndexFunc(rules, func(s fault.RuleStatus) bool { return s.Name == r.PathValue("name") })
		if i < 0 {
			noRule(w, r)
			return
		}
		if rules[i].Fired >= wanted {
			reply(w, http.StatusOK, rules[i])
			return
		}
		select {
		case <-changed:
		case <-over:
			http.Error(w, fmt.Sprintf("rule %q fired %d times in %s, not %d", rules[i].Name, rules[i].Fired, timeout, wanted), http.StatusRequestTimeout)
			return
		case <-r.Context().Done():
			return
		}
	}
}

// watch is the JSON representation of an open watch.
type watch struct {
	ID        int64  `json:"id"`
	Resource  string `json:"resource"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	UserAgent string `json:"userAgent"`
	// Passed counts the events sent to the client. Waiting counts the events received from the API
	// server but not sent yet. Frozen is set if a rule holds back events, or would hold back the
	// next event.
	Passed  int64 `json:"passed"`
	Waiting int   `json:"waiting"`
	Frozen  bool  `json:"frozen"`
}

func (c *controlAPI) listWatches(w http.ResponseWriter, _ *http.Request) {
	list := []watch{}
	for _, s := range c.streams.matching(fault.Match{}) {
		request, held := s.exchange.request, s.frozen.Load()
		one := watch{ID: s.exchange.entry.ID, Resource: resource(request), Namespace: request.Namespace, Name: request.Name,
			UserAgent: request.UserAgent, Passed: s.passed.Load(), Waiting: s.waiting.len(), Frozen: held || c.rules.Holds(request)}
		if held {
			one.Waiting++ // Count the event that is being held back, which is no longer in the queue.
		}
		list = append(list, one)
	}
	slices.SortFunc(list, func(a, b watch) int { return int(a.ID - b.ID) })
	reply(w, http.StatusOK, map[string]any{"watches": list})
}

func (c *controlAPI) cut(w http.ResponseWriter, r *http.Request) {
	if match, ok := c.match(w, r, fault.CutWatch); ok {
		streams := c.streams.matching(match)
		for _, s := range streams {
			s.cut("")
		}
		reply(w, http.StatusOK, map[string]int{"cut": len(streams)})
	}
}

// freezeRule is the name of the rule that POST /freeze adds to hold back watch events.
const freezeRule = "freeze"

func (c *controlAPI) freeze(w http.ResponseWriter, r *http.Request) {
	if match, ok := c.match(w, r, fault.Freeze); ok {
		c.add(w, fault.Rule{Name: freezeRule, Match: match, Fault: fault.Fault{Kind: fault.Freeze}})
	}
}

// match decodes the selection of watches in a request body. An empty body selects all watches. If
// the body is invalid, match responds with an error and returns false.
func (c *controlAPI) match(w http.ResponseWriter, r *http.Request, kind fault.Kind) (fault.Match, bool) {
	text, ok := body(w, r)
	if !ok || len(text) == 0 {
		return fault.Match{}, ok
	}
	match, err := fault.ParseMatch(text, kind)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return fault.Match{}, false
	}
	return match, true
}

// largestScenario is the maximum size of a request body of the control API, in bytes.
const largestScenario = 1 << 20

func body(w http.ResponseWriter, r *http.Request) ([]byte, bool) {
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, largestScenario))
	if err != nil {
		http.Error(w, fmt.Sprintf("read the body: %v", err), http.StatusBadRequest)
		return nil, false
	}
	return text, true
}

func noRule(w http.ResponseWriter, r *http.Request) {
	http.Error(w, fmt.Sprintf("there is no rule named %q", r.PathValue("name")), http.StatusNotFound)
}

func reply(w http.ResponseWriter, code int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	_ = encoder.Encode(value)
}
