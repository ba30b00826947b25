// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/observe"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/test/loopback"
	"tidekeeper.dev/tidekeeper/sandbox/internal/fault"
)

// through returns applications with an empty log, and an address at which connections are passed on to
// the application "app=store:80" at another address.
func through(t *testing.T, to string) (*Applications, string) {
	t.Helper()
	a, err := Start(nil, nil, &observe.Log{})
	if err != nil {
		t.Fatal(err)
	}
	address := loopback.Listen(t, func(operator net.Conn) {
		connection, err := net.Dial("tcp4", to)
		if err != nil {
			t.Error(err)
			return
		}
		a.Pass("app=store:80", operator.(*net.TCPConn), connection)
	})
	t.Cleanup(a.End)
	return a, address
}

// counter is an HTTP server that counts: POST /add increments the number that GET /number returns.
func counter(t *testing.T) string {
	t.Helper()
	var number atomic.Int64
	mux := http.NewServeMux()
	mux.HandleFunc("POST /add", func(http.ResponseWriter, *http.Request) { number.Add(1) })
	mux.HandleFunc("GET /number", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, number.Load()) })
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// lines returns the log of requests, once it has the given number of them.
func lines(t *testing.T, log *observe.Log, n int) string {
	t.Helper()
	for end := time.Now().Add(time.Minute); log.Len() < n && time.Now().Before(end); {
		time.Sleep(time.Millisecond) // sleep: the log has no event to wait for
	}
	var all []string
	for _, r := range log.Since(0) {
		all = append(all, r.String())
	}
	return strings.Join(all, "\n")
}

// TestExchanges checks, for each fault, the answers to the operator, the number that the application
// has counted, and the log.
func TestExchanges(t *testing.T) {
	add := observe.Call{Verb: http.MethodPost, Resource: "app=store:80", Name: "/add"}
	number := observe.Call{Verb: http.MethodGet, Resource: "app=store:80", Name: "/number"}
	for _, tc := range []struct {
		name     string
		disturb  Disturbance
		releases bool // the fault ends as soon as it has hit its request
		answers  string
		log      string
	}{
		{name: "none", answers: "200 200:1 200 200:2", log: "POST /add: 200; GET /number: 200; POST /add: 200; GET /number: 200 older"},
		{
			name: "Close", disturb: Disturbance{Call: add, Nth: 2, Fault: fault.Fault{Kind: fault.Close}},
			answers: "200 200:1 broken 200:1", log: "POST /add: 200; GET /number: 200; POST /add: not sent [Close]; GET /number: 200",
		},
		{
			name: "LoseAnswer", disturb: Disturbance{Call: add, Nth: 2, Fault: fault.Fault{Kind: fault.LoseAnswer}},
			answers: "200 200:1 broken 200:2", log: "POST /add: 200; GET /number: 200; POST /add: 200, and the operator was answered nothing [LoseAnswer]; GET /number: 200 older",
		},
		{
			name: "any path", disturb: Disturbance{Call: observe.Call{Verb: http.MethodPost, Resource: "app=store:80"}, Nth: 1, Fault: fault.Fault{Kind: fault.Close}},
			answers: "broken 200:0 200 200:1", log: "POST /add: not sent [Close]; GET /number: 200; POST /add: 200; GET /number: 200 older",
		},
		{
			name: "Hang", disturb: Disturbance{Call: add, Nth: 1, Fault: fault.Fault{Kind: fault.Hang}}, releases: true,
			answers: "broken 200:0 200 200:1", log: "POST /add: not sent [Hang]; GET /number: 200; POST /add: 200; GET /number: 200 older",
		},
		{
			name: "HangAnswer", disturb: Disturbance{Call: add, Nth: 1, Fault: fault.Fault{Kind: fault.HangAnswer}}, releases: true,
			answers: "broken 200:1 200 200:2", log: "POST /add: 200, and the operator was answered nothing [HangAnswer]; GET /number: 200; POST /add: 200; GET /number: 200 older",
		},
		{
			name: "Delay", disturb: Disturbance{Call: add, Nth: 1, Fault: fault.Fault{Kind: fault.Delay, For: fault.Duration(time.Hour)}}, releases: true,
			answers: "200 200:1 200 200:2", log: "POST /add: 200 [Delay]; GET /number: 200; POST /add: 200; GET /number: 200 older",
		},
		{
			name: "Stale", disturb: Disturbance{Call: number, Nth: 2, Fault: fault.Fault{Kind: fault.Stale}},
			answers: "200 200:1 200 200:1", log: "POST /add: 200; GET /number: 200; POST /add: 200; GET /number: 200 [Stale] older",
		},
		{
			name: "Stale without another answer", disturb: Disturbance{Call: number, Nth: 1, Fault: fault.Fault{Kind: fault.Stale}},
			answers: "200 200:1 200 200:2", log: "POST /add: 200; GET /number: 200 [Stale]; POST /add: 200; GET /number: 200",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			a, address := through(t, counter(t))
			if tc.disturb.Nth > 0 {
				tc.disturb.Rule = "rule"
				disturbed := a.Disturb(tc.disturb)
				go func() {
					<-disturbed.Fired
					if tc.releases {
						a.Release()
					}
				}()
			}
			var answers []string
			transport := &http.Transport{DisableKeepAlives: true}
			for _, call := range []observe.Call{add, number, add, number} {
				request, _ := http.NewRequestWithContext(t.Context(), call.Verb, "http://"+address+call.Name+"?x=1", nil)
				response, err := transport.RoundTrip(request)
				if err != nil {
					answers = append(answers, "broken")
					continue
				}
				body, err := io.ReadAll(response.Body)
				if err != nil {
					t.Error(err)
				}
				_ = response.Body.Close()
				answers = append(answers, strings.TrimSuffix(fmt.Sprintf("%d:%s", response.StatusCode, body), ":"))
			}
			if got := strings.Join(answers, " "); got != tc.answers {
				t.Errorf("the operator is answered %s, want %s", got, tc.answers)
			}
			lines(t, a.log, 4)
			var log []string
			for _, r := range a.log.Since(0) {
				line := strings.Replace(r.String(), "app=store:80 ", "", 1)
				if r.Older {
					line += " older"
				}
				log = append(log, line)
			}
			if got := strings.Join(log, "; "); got != tc.log {
				t.Errorf("logged is %s\nwant      %s", got, tc.log)
			}
		})
	}
}

// TestExchangesOfOtherProtocols checks that bytes of a protocol other than HTTP are divided by their
// direction, that a fault hits the second request of a connection, and that the operator's end of a
// connection without an answer is noticed.
func TestExchangesOfOtherProtocols(t *testing.T) {
	a, address := through(t, loopback.Listen(t, func(connection net.Conn) {
		defer connection.Close()
		fmt.Fprintln(connection, "hello")
		for text := bufio.NewScanner(connection); text.Scan(); {
			fmt.Fprintln(connection, text.Text()+"?")
		}
	}))
	disturbed := a.Disturb(Disturbance{Call: observe.Call{Verb: observe.Exchange, Resource: "app=store:80"}, Nth: 2, Fault: fault.Fault{Kind: fault.HangAnswer}})
	connection, err := net.Dial("tcp4", address)
	if err != nil {
		t.Fatal(err)
	}
	answers := bufio.NewScanner(connection)
	for _, want := range []string{"hello", "one?"} {
		if !answers.Scan() || answers.Text() != want {
			t.Fatalf("it is answered %q, want %q", answers.Text(), want)
		}
		fmt.Fprintln(connection, map[string]string{"hello": "one", "one?": "two"}[want])
	}
	<-disturbed.Fired
	select {
	case <-disturbed.GaveUp:
		t.Error("the operator gives up before it does")
	default:
	}
	_ = connection.Close()
	<-disturbed.GaveUp
	if got, want := lines(t, a.log, 2), "SEND app=store:80: 200\nSEND app=store:80: 200, and the operator was answered nothing [HangAnswer]"; got != want {
		t.Errorf("logged is\n%s\nwant\n%s", got, want)
	}
}

func TestCallOf(t *testing.T) {
	for request, want := range map[string]string{
		"GET /price?cake=1 HTTP/1.1\r\nHost: a\r\n": "GET app=store:80 /price, /price?cake=1",
		"PUT /a%20b HTTP/1.0\r\n":                   "PUT app=store:80 /a%20b, /a%20b",
		"PRI * HTTP/2.0\r\n":                        "SEND app=store:80, ",
		"GET /price":                                "SEND app=store:80, ",
		"\x00\x00\x00\x2d":                          "SEND app=store:80, ",
	} {
		call, target := callOf("app=store:80", []byte(request))
		if got := call.String() + ", " + target; got != want || !call.ToApplication() {
			t.Errorf("%q: %s, want %s", request, got, want)
		}
	}
}
