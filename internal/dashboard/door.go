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
	// ticketAge is how long a tab that asks for nothing can still be reloaded. After that, what its
	// browser has on disk is worth nothing.
	ticketAge = 5 * time.Minute
	// inviteAge is how long the code lasts with which a tab lets in another tab of its browser.
	inviteAge = time.Minute
	// mostWrong is how many wrong codes and tickets are taken until the next link.
	mostWrong = 100
	// mostTabs and mostInvites are how many tabs and invitations are remembered.
	mostTabs    = 64
	mostInvites = 8
)

// sum is the hash of a secret. Secrets are compared by their hashes, so that the time it takes says
// nothing about them, and none is kept.
type sum [sha256.Size]byte

func sumOf(secret string) sum { return sha256.Sum256([]byte(secret)) }

// is reports whether a secret has this hash. No secret has the hash that is all zero.
func (s *sum) is(of sum) bool { return subtle.ConstantTimeCompare(s[:], of[:]) == 1 }

// door lets in the tabs of browsers, and programs. A tab gets a token for a code that is spent with
// that. It keeps the token in memory, and at a reload it shows a ticket, which is spent as well.
type door struct {
	now func() time.Time
	// onGuess is called when too many wrong codes were tried; nil for nothing.
	onGuess func()
	// entered is closed when the first tab was let in.
	entered chan struct{}
	once    sync.Once

	mu sync.Mutex
	// program is the hash of the token for programs; zero for none.
	program sum
	// code is that of the last link; zero if it is spent.
	code    sum
	invites []invite
	tabs    []*tab
	// wrong counts the wrong codes and tickets since the last link.
	wrong int
}

// invite is a code that a tab has asked for, for another tab.
type invite struct {
	code sum
	made time.Time
}

// tab is a tab of a browser that was let in.
type tab struct {
	token, ticket sum
	// before is the ticket that the token was given for. It is good until the token is shown for the
	// first time, as an answer can be lost when a tab is reloaded twice in a row.
	before sum
	// asking is how many requests of the tab are open, and asked when the last one began or ended.
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

// newCode returns the code of a new link, in place of the last one if that is not spent.
func (d *door) newCode() string {
	code := NewToken()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.code, d.wrong = sumOf(code), 0
	return code
}

// invite returns a code for another tab.
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

// pass is what a tab is given for a code or a ticket.
type pass struct {
	// Token is for all requests for data, and Ticket for the next load of the tab.
	Token  string `json:"token"`
	Ticket string `json:"ticket"`
}

var (
	errSpent   = errors.New("this link was used already, or is of another run")
	errGuessed = errors.New("too many wrong codes were tried: no code is taken until kubectl tide dashboard prints another link")
)

// enter lets in a tab that shows a code or a ticket, which is spent with that.
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

// spend returns the tab that a code or a ticket is good for, nil for none. The mutex must be held.
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

// addTab adds a tab, in place of the tab that has asked for nothing for longest if there are too many.
// The mutex must be held.
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

// admit reports whether a token is good; done is to be called at the end of the request.
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

// withToken refuses requests that do not show a token.
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

// serveEnter answers a tab that shows a code or a ticket.
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

// serveInvite gives a tab a code for another tab.
func (d *door) serveInvite(w http.ResponseWriter, _ *http.Request) {
	reply(w, map[string]string{"code": d.invite()}, nil)
}
