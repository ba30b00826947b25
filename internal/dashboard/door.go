// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// ticketAge is the time for which a browser tab's ticket stays valid after the tab's last
	// request. A ticket is the secret with which a tab authenticates after a reload. The time is
	// short, because the browser may have written the ticket to disk.
	ticketAge = 5 * time.Minute
	// inviteAge is the time for which an unused code that admits another browser tab stays valid.
	inviteAge = time.Minute
	// mostWrong is the number of wrong codes and tickets after which the dashboard rejects all
	// codes and tickets until a new link to the dashboard is created.
	mostWrong = 100
	// mostTabs is the maximum number of browser tabs that may use the dashboard. mostInvites is the
	// maximum number of unused codes that admit another tab.
	mostTabs    = 64
	mostInvites = 8
)

// sum is the SHA-256 hash of a secret. Only hashes are stored and compared, so that the duration of
// a comparison reveals nothing about the secret itself.
type sum [sha256.Size]byte

func sumOf(secret string) sum { return sha256.Sum256([]byte(secret)) }

// is compares two hashes of secrets in constant time. A zero hash differs from the hash of every
// secret.
func (s *sum) is(of sum) bool { return subtle.ConstantTimeCompare(s[:], of[:]) == 1 }

// door authenticates the requests of browser tabs and of programs. A tab exchanges the single-use
// code in its link for a token, which authenticates the tab's requests, and a ticket. A reload
// deletes the token, which the tab only holds in memory. The tab then exchanges the ticket for a
// new token and ticket.
type door struct {
	now func() time.Time
	// onGuess is called when the number of wrong codes and tickets reaches mostWrong. It may be
	// nil.
	onGuess func()
	// entered is closed when the first browser tab is admitted.
	entered chan struct{}
	once    sync.Once

	mu sync.Mutex
	// program is the hash of the token for programs, or zero if programs have no access.
	program sum
	// code is the hash of the single-use code in the latest link to the dashboard. It is zero if
	// the code has been used, or if too many wrong codes have invalidated the code.
	code    sum
	invites []invite
	tabs    []*tab
	// wrong counts the wrong codes and tickets since the latest link to the dashboard was created.
	wrong int
}

// invite is an unused code that a browser tab has requested in order to admit another tab: the hash
// of the code, and the time of the request.
type invite struct {
	code sum
	made time.Time
}

// tab is an admitted browser tab.
type tab struct {
	token, ticket sum
	// before is the ticket that the tab exchanged for its current token. It remains valid until the
	// tab first uses the token. If the tab is reloaded before it receives the token, it has no
	// other ticket.
	before sum
	// asking is the number of the browser tab's open requests. asked is the time at which its last
	// request began or ended.
	asking int
	asked  time.Time
}

func newDoor(token string, now func() time.Time) *door {
	d := &door{now: now, entered: make(chan struct{})}
	if token != "" {
		d.program = sumOf(token)
	}
	return d
}

// newCode returns the single-use code for a new link to the dashboard, and invalidates the code of
// the previous link.
func (d *door) newCode() string {
	code := NewToken()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.code, d.wrong = sumOf(code), 0
	return code
}

// invite returns a single-use code that admits another browser tab. If mostInvites codes are
// already unused, the oldest code becomes invalid.
func (d *door) invite() string {
	code := NewToken()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.invites = append(d.invites, invite{sumOf(code), d.now()})
	if len(d.invites) > mostInvites {
		d.invites = d.invites[1:]
	}
	return code
}

// pass is the response to a browser tab that sends a valid code or ticket.
type pass struct {
	// Token authenticates all requests for data. A reloaded tab exchanges Ticket for a new pass.
	Token  string `json:"token"`
	Ticket string `json:"ticket"`
}

var (
	errSpent   = errors.New("this link was used already, or is of another run")
	errGuessed = errors.New("too many wrong codes were tried: no code is taken until kubectl tide dashboard prints another link")
)

// enter admits a browser tab that sends a valid code or ticket, and returns a new token and ticket.
// A code becomes invalid immediately. A ticket becomes invalid when the tab first uses the new
// token.
func (d *door) enter(shown string) (pass, error) {
	of, p := sumOf(shown), pass{NewToken(), NewToken()}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.wrong >= mostWrong {
		return pass{}, errGuessed
	}
	t := d.spend(of)
	if t == nil {
		if d.wrong++; d.wrong == mostWrong {
			d.code, d.invites = sum{}, nil
			if d.onGuess != nil {
				d.onGuess()
			}
		}
		return pass{}, errSpent
	}
	t.token, t.ticket, t.asked = sumOf(p.Token), sumOf(p.Ticket), d.now()
	d.once.Do(func() { close(d.entered) })
	return p, nil
}

// spend returns the browser tab that the code or ticket with the given hash admits, or nil if the
// code or ticket is invalid. A code admits a new tab, and becomes invalid. The caller must hold
// d.mu.
func (d *door) spend(of sum) *tab {
	now := d.now()
	d.invites = slices.DeleteFunc(d.invites, func(i invite) bool { return now.Sub(i.made) > inviteAge })
	invited := slices.IndexFunc(d.invites, func(i invite) bool { return i.code.is(of) })
	switch {
	case d.code.is(of):
		d.code = sum{}
		return d.addTab()
	case invited >= 0:
		d.invites = slices.Delete(d.invites, invited, invited+1)
		return d.addTab()
	}
	for _, t := range d.tabs {
		if !t.ticket.is(of) && !t.before.is(of) {
			continue
		}
		if t.asking == 0 && now.Sub(t.asked) > ticketAge {
			return nil
		}
		t.before = of
		return t
	}
	return nil
}

// addTab adds a browser tab. If there are already mostTabs tabs, it removes the tab whose last
// request is the oldest, preferably a tab without open requests. The caller must hold d.mu.
func (d *door) addTab() *tab {
	if len(d.tabs) >= mostTabs {
		oldest := slices.MinFunc(d.tabs, func(a, b *tab) int {
			if (a.asking > 0) != (b.asking > 0) {
				return min(a.asking, 1) - min(b.asking, 1)
			}
			return a.asked.Compare(b.asked)
		})
		d.tabs = slices.DeleteFunc(d.tabs, func(t *tab) bool { return t == oldest })
	}
	t := &tab{}
	d.tabs = append(d.tabs, t)
	return t
}

// admit reports whether the token of a request is valid. If so, the caller must call done at the
// end of the request, because a tab's ticket does not expire while the tab has open requests.
func (d *door) admit(token string) (done func(), good bool) {
	of := sumOf(token)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.program.is(of) {
		return func() {}, true
	}
	for _, t := range d.tabs {
		if t.token.is(of) {
			t.before = sum{}
			t.asking++
			t.asked = d.now()
			return func() {
				d.mu.Lock()
				defer d.mu.Unlock()
				t.asking--
				t.asked = d.now()
			}, true
		}
	}
	return nil, false
}

// withToken wraps a handler, and rejects requests without a valid token.
func (d *door) withToken(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		shown, isBearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		done, good := d.admit(shown)
		if !isBearer || !good {
			if good {
				done()
			}
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "no token, or that of another run: use the link that kubectl tide dashboard has printed", http.StatusUnauthorized)
			return
		}
		defer done()
		next(w, r)
	}
}

// serveEnter responds with a [pass] to a request with a valid code or ticket.
func (d *door) serveEnter(w http.ResponseWriter, r *http.Request) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		http.Error(w, "send application/json", http.StatusUnsupportedMediaType)
		return
	}
	var shown struct {
		Code string `json:"code"`
	}
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&shown); err != nil {
		http.Error(w, "send a code as one JSON object", http.StatusBadRequest)
		return
	}
	p, err := d.enter(shown.Code)
	switch {
	case errors.Is(err, errGuessed):
		http.Error(w, err.Error(), http.StatusTooManyRequests)
	case err != nil:
		http.Error(w, err.Error(), http.StatusUnauthorized)
	default:
		reply(w, p, nil)
	}
}

// serveInvite responds with a single-use code that admits another browser tab.
func (d *door) serveInvite(w http.ResponseWriter, _ *http.Request) {
	reply(w, map[string]string{"code": d.invite()}, nil)
}
