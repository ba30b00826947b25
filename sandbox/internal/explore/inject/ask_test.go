// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/application"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/faults"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/observe"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/settle"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/test/loopback"
)

// effectsOnAsks maps each fault that hits only requests to applications to the answers to two requests,
// of which it hits the second, while the fault is in force. The application counts its requests.
var effectsOnAsks = map[faults.Kind][]string{
	"NoAnswer": {"1", "held"}, "OldAnswer": {"1", "1"}, "LoseState": {"1", "held"}, "FallBack": {"1", "held"},
}

// askThrough returns an injector for a fault of the second request to an application that counts its
// requests, and a function that sends a number of requests, and returns the answers.
func askThrough(t *testing.T, kind faults.Kind) (*Injector, func(requests int) []string) {
	t.Helper()
	f := faults.Fault{Kind: kind, Step: 1, Call: &observe.Call{Verb: http.MethodGet, Resource: "app=shop:80", Name: "/number"}, Nth: 2}
	i, _ := injectThrough(t, func(http.ResponseWriter, *http.Request) {}, f)
	applications, err := application.Start(nil, nil, i.Log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(applications.End)
	i.Rules.Applications, i.Settler = applications, &settle.Settler{}
	var number atomic.Int64
	counter := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, number.Add(1)) }))
	t.Cleanup(counter.Close)
	address := loopback.Listen(t, func(operator net.Conn) {
		to, err := net.Dial("tcp4", strings.TrimPrefix(counter.URL, "http://"))
		if err != nil {
			t.Error(err)
			return
		}
		applications.Pass("app=shop:80", operator.(*net.TCPConn), to)
	})
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	return i, func(requests int) (answers []string) {
		for range requests {
			answer := make(chan string, 1)
			go func() {
				response, err := client.Get("http://" + address + "/number")
				if err != nil {
					answer <- "broken"
					return
				}
				defer response.Body.Close()
				body, _ := io.ReadAll(response.Body)
				answer <- string(body)
			}()
			var fired <-chan struct{}
			if i.disturbed != nil {
				fired = i.disturbed.Fired
			}
			select {
			case text := <-answer:
				answers = append(answers, text)
				continue
			case <-fired:
			}
			select {
			case text := <-answer:
				answers = append(answers, text)
			case <-time.After(time.Second):
				answers = append(answers, "held")
			}
		}
		return answers
	}
}

func testAsk(t *testing.T, kind faults.Kind) {
	i, ask := askThrough(t, kind)
	if _, err := i.Arm(t.Context()); err != nil {
		t.Fatal(err)
	}
	if answers, want := ask(2), effectsOnAsks[kind]; !slices.Equal(answers, want) {
		t.Errorf("it is answered %q, want %q", answers, want)
	}
	pending := i.trace().Pending
	i.Rules.Remove(faults.FaultRule)
	logged(t, i)
	if holds := i.fault.Entry().Acts() && kind != "NoAnswer"; pending != holds {
		t.Errorf("while it is held back, it is pending: %t", pending)
	}
	// The two kinds without an action that has an effect of its own are reached by the answer alone.
	if want := kind == "NoAnswer" || kind == "OldAnswer"; i.Reached() != want {
		t.Errorf("it is reached: %t, after\n%s", i.Reached(), requests(i))
	}
}
