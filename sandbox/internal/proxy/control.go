// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"

	"tidekeeper.dev/tidekeeper/sandbox/internal/fault"
)

// Control is the handler of the proxy's own API. Errors are one line of text.
func (p *Proxy) Control() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /rules", func(w http.ResponseWriter, _ *http.Request) {
		rules, _ := p.rules.List()
		reply(w, http.StatusOK, map[string]any{"rules": rules})
	})
	mux.HandleFunc("POST /rules", p.addRules)
	mux.HandleFunc("DELETE /rules", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, map[string]int{"removed": p.rules.RemoveFunc(func(fault.Rule) bool { return true })})
	})
	mux.HandleFunc("GET /rules/{name}", p.rule)
	mux.HandleFunc("DELETE /rules/{name}", func(w http.ResponseWriter, r *http.Request) {
		if !p.rules.Remove(r.PathValue("name")) {
			noRule(w, r)
			return
		}
		reply(w, http.StatusOK, map[string]int{"removed": 1})
	})
	mux.HandleFunc("GET /watches", p.listWatches)
	mux.HandleFunc("POST /cut", p.cut)
	mux.HandleFunc("POST /freeze", p.freeze)
	mux.HandleFunc("POST /thaw", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, map[string]int{"removed": p.rules.RemoveFunc(func(r fault.Rule) bool { return r.Fault.Kind == fault.Freeze })})
	})
	return mux
}

func (p *Proxy) addRules(w http.ResponseWriter, r *http.Request) {
	text, ok := body(w, r)
	if !ok {
		return
	}
	rules, err := fault.Parse(text)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	p.add(w, rules...)
}

func (p *Proxy) add(w http.ResponseWriter, rules ...fault.Rule) {
	if err := p.rules.Add(rules...); err != nil {
		http.Error(w, err.Error(), http.StatusConflict)
		return
	}
	reply(w, http.StatusCreated, map[string]any{"rules": rules})
}

// rule answers with a rule, and if the query says so not before it has been
// done so many times.
func (p *Proxy) rule(w http.ResponseWriter, r *http.Request) {
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
		rules, changed := p.rules.List()
		i := slices.IndexFunc(rules, func(c fault.Counted) bool { return c.Name == r.PathValue("name") })
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
			http.Error(w, fmt.Sprintf("rule %q was done %d times in %s, not %d", rules[i].Name, rules[i].Fired, timeout, wanted), http.StatusRequestTimeout)
			return
		case <-r.Context().Done():
			return
		}
	}
}

// watch is an open watch, as the API shows it.
type watch struct {
	ID        int64  `json:"id"`
	Resource  string `json:"resource"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	UserAgent string `json:"userAgent"`
	// Passed is how many events the client has been sent; Waiting how many not
	// yet, and Frozen whether a rule holds them back.
	Passed  int64 `json:"passed"`
	Waiting int   `json:"waiting"`
	Frozen  bool  `json:"frozen"`
}

func (p *Proxy) listWatches(w http.ResponseWriter, _ *http.Request) {
	list := []watch{}
	for _, s := range p.streams.those(fault.Match{}) {
		request := s.exchange.request
		one := watch{ID: s.exchange.entry.ID, Resource: resource(request), Namespace: request.Namespace, Name: request.Name,
			UserAgent: request.UserAgent, Passed: s.passed.Load(), Waiting: s.waiting.len(), Frozen: s.frozen.Load()}
		if one.Frozen {
			one.Waiting++ // The one that the stream stands at.
		}
		list = append(list, one)
	}
	slices.SortFunc(list, func(a, b watch) int { return int(a.ID - b.ID) })
	reply(w, http.StatusOK, map[string]any{"watches": list})
}

func (p *Proxy) cut(w http.ResponseWriter, r *http.Request) {
	if match, ok := p.match(w, r, fault.CutWatch); ok {
		streams := p.streams.those(match)
		for _, s := range streams {
			s.cut("")
		}
		reply(w, http.StatusOK, map[string]int{"cut": len(streams)})
	}
}

// freezeRule is the name of the rule that POST /freeze adds.
const freezeRule = "freeze"

func (p *Proxy) freeze(w http.ResponseWriter, r *http.Request) {
	if match, ok := p.match(w, r, fault.Freeze); ok {
		p.add(w, fault.Rule{Name: freezeRule, Match: match, Fault: fault.Fault{Kind: fault.Freeze}})
	}
}

// match reads which watches are meant, all if there is no body.
func (p *Proxy) match(w http.ResponseWriter, r *http.Request, kind fault.Kind) (fault.Match, bool) {
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

// largestScenario is far more than anybody writes.
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
