// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/faults"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/observe"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/settle"
	"tidekeeper.dev/tidekeeper/sandbox/internal/fault"
	"tidekeeper.dev/tidekeeper/sandbox/internal/proxy"
)

// injectThrough returns an injector for fault `f` with a proxy in front of the given server, and a
// client of that proxy.
func injectThrough(t *testing.T, server http.HandlerFunc, f faults.Fault) (*Injector, *http.Client) {
	t.Helper()
	upstream := httptest.NewServer(server)
	t.Cleanup(upstream.Close)
	log := &observe.Log{}
	front, err := proxy.Start(proxy.Options{Upstream: &rest.Config{Host: upstream.URL}, Listen: "127.0.0.1:0", Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = front.Close() })
	config, err := clientcmd.RESTConfigFromKubeConfig(front.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	i := New(Parts{Rules: Rules{Proxy: front}, Notes: &observe.Notes{}, Log: log, Processes: &observe.ProcessLog{}})
	i.Aim(&f)
	return i, client
}

// heldBack is the status of a write that receives no response until the rule is removed.
const heldBack = -1

// effectsOnWrites maps each fault for writes to its effect: whether the write reaches the API
// server, and the status that the client receives. 0 means a broken connection.
var effectsOnWrites = map[faults.Kind]struct {
	sent   bool
	status int
}{
	"CrashBefore": {status: heldBack}, "CrashAfter": {sent: true, status: heldBack}, "CrashTwice": {sent: true, status: heldBack},
	"LoseAnswer": {sent: true}, "Refuse": {}, "Late": {status: heldBack}, "CutOff": {status: heldBack},
	"Conflict": {status: 409}, "Throttle": {status: 429}, "ServerError": {status: 500}, "Invalid": {status: 422}, "Unavailable": {status: 503},
	"Timeout": {sent: true, status: 504}, "Overtake": {status: heldBack}, "Pause": {status: heldBack}, "KillAPIServer": {status: heldBack}, "KillEtcd": {status: heldBack},
}

// effectsOnEvents maps each fault for events to the events that the client receives while the rule
// is active. The server sends the events a and b, and a bookmark.
var effectsOnEvents = map[faults.Kind]string{
	"DropEvents": "BOOKMARK", "DropEvent": "b BOOKMARK", "DuplicateEvent": "a " + "a b BOOKMARK", "LateEvent": "a b BOOKMARK",
	"ExpireWatch": "ERROR", "CutWatch": "", "Freeze": "held", "FreezeLong": "held", "CrashEvent": "held",
}

// TestEachFaultTakesEffect checks that each fault for writes or events has the expected effect on a
// request or a watch. The fault must then count as reached, unless it requires an action, which
// this test does not perform.
func TestEachFaultTakesEffect(t *testing.T) {
	for _, entry := range faults.Table {
		kind := entry.Kind
		_, onWrites := effectsOnWrites[kind]
		_, onEvents := effectsOnEvents[kind]
		_, onAsks := effectsOnAsks[kind]
		switch {
		case onAsks:
			t.Run(string(kind), func(t *testing.T) { t.Parallel(); testAsk(t, kind) })
		case onWrites:
			t.Run(string(kind), func(t *testing.T) { t.Parallel(); testWrite(t, kind) })
		case onEvents:
			t.Run(string(kind), func(t *testing.T) { t.Parallel(); testEvents(t, kind) })
		case entry.Hits != faults.Start: // They are starts.
			t.Errorf("what %s does is not tested", kind)
		}
	}
}

func testWrite(t *testing.T, kind faults.Kind) {
	want, sent := effectsOnWrites[kind], make(chan struct{}, 1)
	call := &observe.Call{Verb: "update", Resource: "configmaps", Namespace: "shop", Name: "a"}
	i, client := injectThrough(t, func(http.ResponseWriter, *http.Request) { sent <- struct{}{} }, faults.Fault{Kind: kind, Step: 1, Call: call, Nth: 1})
	fired, err := i.Arm(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	answers := make(chan int, 1)
	go func() {
		request, _ := http.NewRequestWithContext(ctx, http.MethodPut, i.Rules.Proxy.URL+"/api/v1/namespaces/shop/configmaps/a", strings.NewReader("{}"))
		response, err := client.Do(request)
		if err != nil {
			answers <- 0
			return
		}
		defer response.Body.Close()
		answers <- response.StatusCode
	}()
	<-fired
	if want.sent {
		<-sent
	}
	if want.status == heldBack {
		select {
		case status := <-answers:
			t.Errorf("it is answered %d", status)
		case <-time.After(100 * time.Millisecond):
		}
		cancel()
	} else if status := <-answers; status != want.status {
		t.Errorf("it is answered %d, want %d", status, want.status)
	}
	if len(sent) > 0 {
		t.Error("it arrives")
	}
	checkReached(t, i)
}

// checkReached checks that the fault counts as reached if it requires no action besides its rule.
func checkReached(t *testing.T, i *Injector) {
	t.Helper()
	logged(t, i)
	entry := i.fault.Entry()
	if want := !entry.Acts() && !entry.ListsAfter; i.Reached() != want {
		t.Errorf("with the rule alone, it is reached: %t, want %t, after\n%s", i.Reached(), want, requests(i))
	}
}

// logged waits until the proxy's log shows the effect of the fault's rule.
func logged(t *testing.T, i *Injector) {
	t.Helper()
	// The end of a watch is logged after the fault that ended it.
	ends := slices.ContainsFunc(i.Rules.List(), func(r fault.RuleStatus) bool {
		return r.Fault.Kind == fault.ExpireWatch || r.Fault.Kind == fault.CutWatch
	})
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) { // sleep: the log has no event to wait for
		if slices.ContainsFunc(i.Log.Since(0), func(r observe.Request) bool { return r.Rule == faults.FaultRule && (r.Event == "" || !ends) }) {
			return
		}
	}
	t.Fatalf("the log does not show what the rule has done:\n%s", requests(i))
}

// requests returns the lines of the proxy's log.
func requests(i *Injector) string {
	var lines []string
	for _, r := range i.Log.Since(0) {
		lines = append(lines, r.String())
	}
	return strings.Join(lines, "\n")
}

// TestFaultsWithoutEffect checks that no fault counts as reached if its rule hits a request or an
// event without affecting it, or if the operator is not restarted.
func TestFaultsWithoutEffect(t *testing.T) {
	for _, entry := range faults.Table {
		t.Run(string(entry.Kind), func(t *testing.T) {
			t.Parallel()
			f, nothing, path := faults.Fault{Kind: entry.Kind, Step: 1, Until: 1}, fault.Fault{Kind: fault.Mark}, "/api/v1/configmaps?watch=true"
			switch entry.Hits {
			case faults.Ask:
				i, ask := askThrough(t, entry.Kind)
				if _, err := i.arm(t.Context(), fault.Fault{Kind: fault.Delay, For: 1}); err != nil {
					t.Fatal(err)
				}
				if answers := ask(2); !slices.Equal(answers, []string{"1", "2"}) {
					t.Errorf("it is answered %q", answers)
				}
				if logged(t, i); i.Reached() {
					t.Errorf("it is reached, after\n%s", requests(i))
				}
				return
			case faults.Write:
				f.Call, f.Nth = &observe.Call{Verb: "get", Resource: "configmaps", Namespace: "shop", Name: "a"}, 1
				nothing, path = fault.Fault{Kind: fault.Delay, For: 1}, "/api/v1/namespaces/shop/configmaps/a"
			case faults.Event, faults.Events:
				f.Resource = "configmaps"
			}
			i, client := injectThrough(t, sendEvents, f)
			fired, err := i.arm(t.Context(), nothing)
			if err != nil {
				t.Fatal(err)
			}
			if fired != nil {
				ctx, cancel := context.WithCancel(t.Context())
				request, _ := http.NewRequestWithContext(ctx, http.MethodGet, i.Rules.Proxy.URL+path, nil)
				response, err := client.Do(request)
				if err != nil {
					t.Fatal(err)
				}
				<-fired
				cancel()
				_ = response.Body.Close()
				logged(t, i)
			}
			if i.Reached() {
				t.Errorf("it is reached, after\n%s", requests(i))
			}
		})
	}
}

// sendEvents answers each request with the events a and b, and a bookmark. It then waits until the
// client is gone.
func sendEvents(w http.ResponseWriter, request *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	for _, event := range []string{"ADDED a", "ADDED b", "BOOKMARK "} {
		what, name, _ := strings.Cut(event, " ")
		_, _ = fmt.Fprintf(w, `{"type":%q,"object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":%q,"resourceVersion":"5"}}}`+"\n", what, name)
	}
	_ = http.NewResponseController(w).Flush()
	<-request.Context().Done()
}

func testEvents(t *testing.T, kind faults.Kind) {
	i, client := injectThrough(t, sendEvents, faults.Fault{Kind: kind, Step: 1, Until: 1, Resource: "configmaps"})
	fired, err := i.Arm(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	response, err := client.Get(i.Rules.Proxy.URL + "/api/v1/configmaps?watch=true")
	if err != nil && kind == "CutWatch" { // The watch may be cut before the client has read the response headers.
		<-fired
		checkReached(t, i)
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	events := make(chan string, 10)
	go func() {
		defer close(events)
		for lines := bufio.NewScanner(response.Body); lines.Scan(); {
			var event struct {
				Type   string
				Object struct{ Metadata struct{ Name string } }
			}
			if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
				events <- err.Error()
				return
			}
			if event.Type == "ADDED" {
				event.Type = event.Object.Metadata.Name
			}
			events <- event.Type
		}
	}()
	<-fired
	want := strings.Fields(effectsOnEvents[kind])
	if slices.Equal(want, []string{"held"}) {
		select {
		case event := <-events:
			t.Errorf("%s arrives", event)
		case <-time.After(100 * time.Millisecond):
		}
		i.Rules.Remove(faults.FaultRule)
		want = []string{"a", "b", "BOOKMARK"}
	}
	for _, next := range want {
		if event := <-events; event != next {
			t.Errorf("%s arrives, want %s", event, next)
		}
	}
	if kind == "LateEvent" && time.Since(began) < 2*time.Second {
		t.Errorf("it is only %s late", time.Since(began))
	}
	if kind == "CutWatch" {
		if event, more := <-events; more {
			t.Errorf("%s arrives", event)
		}
	}
	checkReached(t, i)
}

// TestUnreachedFaultEnds checks that no goroutine keeps waiting for a rule that was removed before
// it fired.
func TestUnreachedFaultEnds(t *testing.T) {
	rules := fault.NewRuleSet()
	if err := rules.Add(fault.Rule{Name: faults.FaultRule, Fault: fault.Fault{Kind: fault.Close}}); err != nil {
		t.Fatal(err)
	}
	fired, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		whenFired(context.Background(), rules, faults.FaultRule, fired)
	}()
	rules.Remove(faults.FaultRule)
	select {
	case <-over:
	case <-time.After(2 * time.Minute):
		t.Fatal("it waits for a rule that is not there any more")
	}
	select {
	case <-fired:
		t.Error("it has not fired")
	default:
	}
}

// TestMoments checks that "step N" refers to the etcd revision at which step N began, even during
// that step.
func TestMoments(t *testing.T) {
	i := New(Parts{Settler: &settle.Settler{Revisions: []int64{10, 20, 30}}, Recorder: &observe.Recorder{Versions: []observe.Version{{Revision: 40}}}}).InRun(nil, nil, 0, 0)
	for asOf, want := range map[string]int64{"step 0": 10, "step 1": 20, "step 2": 30} {
		if got, err := i.moment(asOf); got != want || err != nil {
			t.Errorf("%s is as of %d, %v, want %d", asOf, got, err, want)
		}
	}
	if _, err := i.moment("step 3"); err == nil {
		t.Error("there is a step 3 already")
	}
}

// TestActionsInFuzz checks that a fault whose action needs a baseline fails in fuzz, which has no
// baseline.
func TestActionsInFuzz(t *testing.T) {
	now := make(chan struct{})
	close(now)
	for _, entry := range faults.Table {
		if entry.ActInRun == nil {
			continue
		}
		i, _ := injectThrough(t, func(http.ResponseWriter, *http.Request) {}, faults.Fault{Kind: entry.Kind, Step: 1, Call: &observe.Call{Verb: "update"}})
		if _, err := i.Strike(t.Context(), now, now, time.Minute, 0); err == nil || i.Reached() {
			t.Errorf("%s in fuzz: %v, reached: %t", entry.Kind, err, i.Reached())
		}
	}
}

// TestReached checks that the trace of a fault does not count for the next fault.
func TestReached(t *testing.T) {
	i, client := injectThrough(t, func(http.ResponseWriter, *http.Request) {}, faults.Fault{Kind: "Unavailable", Step: 1, Call: &observe.Call{Verb: "get", Resource: "configmaps"}, Nth: 1})
	if i.Reached() {
		t.Error("it is reached before it is armed")
	}
	if _, err := i.Arm(t.Context()); err != nil {
		t.Fatal(err)
	}
	response, err := client.Get(i.Rules.Proxy.URL + "/api/v1/namespaces/shop/configmaps/a")
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if logged(t, i); !i.Reached() {
		t.Errorf("it is not reached, after\n%s", requests(i))
	}
	i.Rules.Remove(faults.FaultRule)
	if i.Aim(i.fault); i.Reached() {
		t.Error("another fault is reached already")
	}
	if _, err := i.Arm(t.Context()); err != nil || i.Reached() {
		t.Errorf("%v; another fault is reached by what was recorded before", err)
	}
}
