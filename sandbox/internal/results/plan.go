// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package results

import (
	"context"
	"io"
	"slices"
	"strings"
	"time"
)

// Plan chooses the cases to play.
type Plan struct {
	// For limits the time of the whole run; 0 plays every case.
	For time.Duration
	// Only are substrings of the names of cases, or IDs; empty plays every case.
	Only []string
	// Shard and Shards divide the cases among machines: this process plays part Shard of Shards,
	// counted from 1.
	Shard, Shards int
	// Jobs is the number of sandboxes that play side by side.
	Jobs int
	// Fresh discards the cases and findings that earlier runs recorded.
	Fresh bool
	// Progress receives a line for each case.
	Progress io.Writer
}

// Chooses reports whether Only selects a case.
func (p *Plan) Chooses(name, id string) bool {
	return len(p.Only) == 0 || slices.ContainsFunc(p.Only, func(part string) bool { return strings.Contains(name, part) || id == part })
}

// Plays reports whether a case is selected by Only and in this part of the cases.
func (p *Plan) Plays(name, id string) bool {
	return p.Chooses(name, id) && InPart(name, p.Shard, p.Shards)
}

// Begin opens the results of a directory as Open does, for cases that depend on the inputs, and
// prints which cases of earlier runs are played again. The context over ends when the time of the
// plan is over. The caller must call end.
func (t *Tool[F]) Begin(ctx context.Context, dir string, in Inputs, p Plan) (book *Book[F], over context.Context, end func(), err error) {
	began, over, cancel := time.Now(), ctx, func() {}
	if p.For > 0 {
		over, cancel = context.WithDeadline(ctx, began.Add(p.For))
	}
	about, err := NewAbout(in)
	if err == nil {
		about.Fresh = p.Fresh
		book, err = t.Open(dir, about)
	}
	if err != nil {
		cancel()
		return nil, nil, nil, err
	}
	book.began = began
	book.Opened(p.Progress, t.Cases)
	return book, over, func() {
		book.Close()
		cancel()
	}, nil
}
