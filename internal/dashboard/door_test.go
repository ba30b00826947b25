// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// doorClock is a fake clock that shows noon plus the duration `after`.
type doorClock struct{ after atomic.Int64 }

func (c *doorClock) now() time.Time { return noon.Add(time.Duration(c.after.Load())) }

func (c *doorClock) pass(d time.Duration) { c.after.Add(int64(d)) }

// doorSite returns a site whose door uses a fake clock, and the code in the site's link.
func doorSite(t *testing.T) (s *Site, code string, clock *doorClock) {
	t.Helper()
	s, clock = newTestSite(t, &fakeActions{}), &doorClock{}
	s.door.now = clock.now
	return s, s.door.newCode(), clock
}

// showCode sends a code or a ticket as the page's script does.
func showCode(s *Site, code string) *httptest.ResponseRecorder {
	body, _ := json.Marshal(map[string]string{"code": code})
	return send(s, "POST", "/-/enter", ourHost, map[string]string{"Content-Type": "application/json", "Origin": "http://" + ourHost, "Sec-Fetch-Site": "same-origin"}, string(body))
}

// enters sends a code or a ticket, asserts that it is accepted, and returns the response.
func enters(t *testing.T, s *Site, code string) pass {
	t.Helper()
	w := showCode(s, code)
	var p pass
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || w.Code != http.StatusOK {
		t.Fatalf("it is not let in: %d %s: %v", w.Code, w.Body, err)
	}
	return p
}

// seesData reports whether a token is accepted. It requests a nonexistent page, because the status
// code shows whether the token is valid.
func seesData(s *Site, token string) bool {
	return send(s, "GET", "/-/page/nowhere", ourHost, bearer(token), "").Code == http.StatusNotFound
}

// refusesCode asserts that the given code or ticket is rejected. what describes it for the error
// message.
func refusesCode(t *testing.T, s *Site, what, code string) {
	t.Helper()
	if w := showCode(s, code); w.Code != http.StatusUnauthorized || strings.Contains(w.Body.String(), `"token"`) {
		t.Errorf("%s: %d %s, want 401", what, w.Code, w.Body)
	}
}

// TestLinkIsForOneTab checks that the code in a link admits a single tab, is not accepted as a
// token, and becomes invalid when the next link is created.
func TestLinkIsForOneTab(t *testing.T) {
	s, code, _ := doorSite(t)
	refusesCode(t, s, "no code", "")
	refusesCode(t, s, "a part of the code", code[:42])
	refusesCode(t, s, "the token for programs", testToken)
	if seesData(s, code) {
		t.Error("the code gets data without being spent")
	}
	select {
	case <-s.Used():
		t.Error("the link counts as used before it is")
	default:
	}
	p := enters(t, s, code)
	if !seesData(s, p.Token) || seesData(s, p.Ticket) {
		t.Error("the token gets no data, or the ticket does")
	}
	select {
	case <-s.Used():
	default:
		t.Error("the link does not count as used")
	}
	refusesCode(t, s, "the code again", code)
	refusesCode(t, s, "the token as a code", p.Token)

	unused := s.door.newCode()
	next := s.door.newCode()
	refusesCode(t, s, "a link before the last", unused)
	if another := enters(t, s, next); !seesData(s, another.Token) || !seesData(s, p.Token) {
		t.Error("two tabs are not both let in")
	}
}

// TestOneOfManyGetsTheCode checks that only one of several tabs that send the same code
// concurrently is admitted.
func TestOneOfManyGetsTheCode(t *testing.T) {
	s, code, _ := doorSite(t)
	var let, refused atomic.Int32
	var all sync.WaitGroup
	for range 32 {
		all.Go(func() {
			switch showCode(s, code).Code {
			case http.StatusOK:
				let.Add(1)
			case http.StatusUnauthorized:
				refused.Add(1)
			}
		})
	}
	all.Wait()
	if let.Load() != 1 || refused.Load() != 31 {
		t.Errorf("%d are let in and %d refused, want 1 and 31", let.Load(), refused.Load())
	}
}

// TestTicketIsForOneReload checks that exchanging a ticket invalidates the tab's previous token.
// The ticket is accepted again only until the new token is used, in case the response was lost.
func TestTicketIsForOneReload(t *testing.T) {
	s, code, _ := doorSite(t)
	first := enters(t, s, code)
	lost := enters(t, s, first.Ticket)
	second := enters(t, s, first.Ticket)
	if seesData(s, first.Token) || seesData(s, lost.Token) {
		t.Error("the token of a document that is gone gets data")
	}
	if !seesData(s, second.Token) {
		t.Error("the token after a reload gets no data")
	}
	refusesCode(t, s, "a ticket that was used", first.Ticket)
	refusesCode(t, s, "a ticket whose answer was lost", lost.Ticket)
	if third := enters(t, s, second.Ticket); !seesData(s, third.Token) || seesData(s, second.Token) {
		t.Error("the second reload fails")
	}
}

// TestTicketsEndWithTheirTab checks that the ticket of a closed tab soon expires, because the
// browser may have written the ticket to disk. The ticket of a tab with an open stream remains
// valid.
func TestTicketsEndWithTheirTab(t *testing.T) {
	s, code, clock := doorSite(t)
	p := enters(t, s, code)
	leave, good := s.door.admit(p.Token)
	if !good {
		t.Fatal("the token is refused")
	}
	clock.pass(time.Hour)
	p = enters(t, s, p.Ticket) // The ticket of a tab with an open request does not expire.
	leave()
	clock.pass(ticketAge + time.Second)
	refusesCode(t, s, "the ticket of a tab that is gone", p.Ticket)
	if !seesData(s, p.Token) {
		t.Error("a tab that was paused for long is refused")
	}
	if p = enters(t, s, p.Ticket); !seesData(s, p.Token) {
		t.Error("it cannot be reloaded after that")
	}
}

// TestInvitations checks that a tab can admit another tab by a single-use code, and that the code
// expires.
func TestInvitations(t *testing.T) {
	s, code, clock := doorSite(t)
	p := enters(t, s, code)
	invite := func(token string) string {
		w := send(s, "POST", "/-/invite", ourHost, bearer(token), "")
		var given struct{ Code string }
		if err := json.Unmarshal(w.Body.Bytes(), &given); w.Code == http.StatusOK && err != nil {
			t.Fatal(err)
		}
		return given.Code
	}
	if invite("another") != "" {
		t.Fatal("a client without a token gets a code")
	}
	first, late := invite(p.Token), invite(p.Token)
	if other := enters(t, s, first); !seesData(s, other.Token) || other.Token == p.Token || !seesData(s, p.Token) {
		t.Error("the tabs have no tokens of their own")
	}
	refusesCode(t, s, "an invitation that was used", first)
	clock.pass(inviteAge + time.Second)
	refusesCode(t, s, "an invitation that is too old", late)
	var many []string
	for range mostInvites + 1 {
		many = append(many, invite(p.Token))
	}
	refusesCode(t, s, "an invitation too many", many[0])
}

// TestGuessingEnds checks that after too many wrong codes, valid codes and tickets are rejected,
// too, until the next link is created. Admitted tabs keep their access.
func TestGuessingEnds(t *testing.T) {
	s, code, _ := doorSite(t)
	guessed := 0
	s.door.onGuess = func() { guessed++ }
	p := enters(t, s, code)
	code = s.door.newCode()
	for range mostWrong {
		refusesCode(t, s, "a guess", NewToken())
	}
	for _, right := range []string{code, p.Ticket} {
		if w := showCode(s, right); w.Code != http.StatusTooManyRequests {
			t.Errorf("after %d wrong codes a right one is answered with %d %s", mostWrong, w.Code, w.Body)
		}
	}
	if guessed != 1 || !seesData(s, p.Token) {
		t.Errorf("it is reported %d times, want once; and the tab that is in sees data: %v", guessed, seesData(s, p.Token))
	}
	next := s.door.newCode()
	refusesCode(t, s, "the link before", code)
	enters(t, s, next)
	enters(t, s, p.Ticket)
}

// TestForeignOriginsSpendNoCode checks that other websites can neither use nor request a code, not
// even by forms and simple requests.
func TestForeignOriginsSpendNoCode(t *testing.T) {
	s, code, _ := doorSite(t)
	body := `{"code":"` + code + `"}`
	isJSON := map[string]string{"Content-Type": "application/json"}
	for _, headers := range []map[string]string{
		merge(isJSON, "Origin", "http://127.0.0.1:9999"), merge(isJSON, "Origin", "null"), merge(isJSON, "Sec-Fetch-Site", "same-site"), merge(isJSON, "Sec-Fetch-Site", "none"), merge(isJSON, "Origin", "http://evil.test"),
	} {
		if w := send(s, "POST", "/-/enter", ourHost, headers, body); w.Code != http.StatusForbidden || w.Body.Len() > 0 {
			t.Errorf("%v: %d %s, want 403", headers, w.Code, w.Body)
		}
	}
	for _, tc := range []struct {
		method, host, kind, body string
		want                     int
	}{
		{"POST", "evil.test:8123", "application/json", body, http.StatusMisdirectedRequest},
		{"POST", ourHost, "text/plain", body, http.StatusUnsupportedMediaType},
		{"POST", ourHost, "", body, http.StatusUnsupportedMediaType},
		{"POST", ourHost, "application/json", `[` + body + `]`, http.StatusBadRequest},
		{"POST", ourHost, "application/json", `{"code":"` + code + `","also":1}`, http.StatusBadRequest},
		{"POST", ourHost, "application/json", `{"code":"` + strings.Repeat("x", maxBody) + `"}`, http.StatusBadRequest},
		{"GET", ourHost, "application/json", body, http.StatusNotFound},
		{"PUT", ourHost, "application/json", body, http.StatusMethodNotAllowed},
	} {
		if w := send(s, tc.method, "/-/enter?code="+code, tc.host, map[string]string{"Content-Type": tc.kind}, tc.body); w.Code != tc.want {
			t.Errorf("%+v: %d %s", tc, w.Code, w.Body)
		}
	}
	enters(t, s, code) // The rejected requests must not have used up the code.
}

// TestTabsAreBounded checks that the number of admitted tabs is limited, and that the tabs with the
// latest requests are kept.
func TestTabsAreBounded(t *testing.T) {
	s, code, clock := doorSite(t)
	open := enters(t, s, code)
	if _, good := s.door.admit(open.Token); !good { // Keep a request of this tab open.
		t.Fatal("the token is refused")
	}
	clock.pass(time.Second)
	second := enters(t, s, s.door.newCode())
	for range mostTabs - 1 {
		clock.pass(time.Second)
		enters(t, s, s.door.newCode())
	}
	if seesData(s, second.Token) || !seesData(s, open.Token) {
		t.Error("the tab that has asked for nothing for longest is not the one that is forgotten")
	}
}

// TestWithoutTokenForPrograms checks that a site without a token for programs accepts none.
func TestWithoutTokenForPrograms(t *testing.T) {
	s := NewSite(memberOf(newTestSite(t, nil)), Options{Now: func() time.Time { return noon }, Local: time.UTC})
	for _, token := range []string{"", testToken, "\x00"} {
		if seesData(s, token) {
			t.Errorf("the token %q gets data", token)
		}
	}
}
