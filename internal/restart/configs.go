// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"tidekeeper.dev/tidekeeper/internal/podconfig"
)

// configs knows the content of all ConfigMaps and Secrets that are watched, by its hashes, and
// which ScheduledRestarts it matters to. So an event costs a look at those that use its object,
// however many others there are.
type configs struct {
	mu      sync.Mutex
	records map[podconfig.ID]*podconfig.Record
	// users are the ScheduledRestarts that an object matters to.
	users map[podconfig.ID]map[types.NamespacedName]struct{}
	used  map[types.NamespacedName]*configUse
	// changed is called with those that an event matters to.
	changed func([]types.NamespacedName)
}

// configUse is what a ScheduledRestart was last decided about.
type configUse struct {
	// encoded is what its target uses, and secrets says that Secrets count.
	encoded string
	secrets bool
	ids     []podconfig.ID
	// hash is that of the content, and since is when it became that, or later.
	hash  string
	since time.Time
}

// clockAhead is how far the clock of an API server may be ahead of this one: a change that is
// noted with a later time counts from when it was seen.
const clockAhead = 5 * time.Minute

func newConfigs(changed func([]types.NamespacedName)) *configs {
	return &configs{
		records: map[podconfig.ID]*podconfig.Record{}, users: map[podconfig.ID]map[types.NamespacedName]struct{}{},
		used: map[types.NamespacedName]*configUse{}, changed: changed,
	}
}

// set takes in an object that appeared or changed.
func (c *configs) set(r *podconfig.Record) {
	c.mu.Lock()
	old := c.records[r.ID]
	c.records[r.ID] = r
	if old != nil && old != r && old.SameContent(r) {
		// Something else of it was modified.
		r.SetModified(old)
		c.mu.Unlock()
		return
	}
	users := c.usersOf(r.ID)
	c.mu.Unlock()
	c.changed(users)
}

// remove takes in that an object is gone.
func (c *configs) remove(id podconfig.ID) {
	c.mu.Lock()
	delete(c.records, id)
	users := c.usersOf(id)
	c.mu.Unlock()
	c.changed(users)
}

func (c *configs) usersOf(id podconfig.ID) []types.NamespacedName {
	return slices.Collect(maps.Keys(c.users[id]))
}

// content returns the content of what the target of a ScheduledRestart uses, and when it became
// that, or later. From then on changes of that matter to it.
func (c *configs) content(key types.NamespacedName, encoded string, secrets bool, now time.Time) (hash string, since time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	uses, _ := podconfig.Parse(encoded)
	use := c.used[key]
	if use == nil || use.encoded != encoded || use.secrets != secrets {
		c.drop(key)
		use = &configUse{encoded: encoded, secrets: secrets}
		for _, u := range podconfig.Scope(uses, secrets) {
			use.ids = append(use.ids, podconfig.ID{Kind: u.Kind, Namespace: key.Namespace, Name: u.Name})
		}
		c.used[key] = use
		for _, id := range use.ids {
			if c.users[id] == nil {
				c.users[id] = map[types.NamespacedName]struct{}{}
			}
			c.users[id][key] = struct{}{}
		}
	}
	content := podconfig.ContentOf(key.Namespace, uses, secrets, func(id podconfig.ID) *podconfig.Record { return c.records[id] })
	if use.hash != content.Hash {
		use.hash, use.since = content.Hash, changedAt(content, now)
	}
	return use.hash, use.since
}

// changedAt returns when a content that was not known before became what it is, or later.
func changedAt(content podconfig.Content, now time.Time) time.Time {
	if content.Modified.IsZero() || content.Modified.After(now.Add(clockAhead)) {
		return now
	}
	return content.Modified
}

// forget drops what is known of a ScheduledRestart.
func (c *configs) forget(key types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(key)
}

func (c *configs) drop(key types.NamespacedName) {
	use := c.used[key]
	if use == nil {
		return
	}
	delete(c.used, key)
	for _, id := range use.ids {
		if delete(c.users[id], key); len(c.users[id]) == 0 {
			delete(c.users, id)
		}
	}
}
