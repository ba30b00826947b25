// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cmdutil

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
)

// FollowContexts prints changes of objects in several clusters concurrently, with a Follower for
// each context. If a cluster can no longer be followed, it prints a note and continues with the
// other clusters. It returns an error if no cluster is left, or if writing the output fails.
func (e *Env) FollowContexts(ctx context.Context, followers []*Follower) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var mu sync.Mutex
	var problems []Problem
	var following sync.WaitGroup
	for _, f := range followers {
		env := e.ForContext(f.Context)
		env.Console.Out = &sharedWriter{mu: &mu, to: e.Console.Out}
		env.Console.ErrOut = &sharedWriter{mu: &mu, to: e.Console.ErrOut, prefix: f.Context + ": "}
		following.Go(func() {
			err := env.Follow(ctx, f)
			if err == nil || ctx.Err() != nil {
				return
			}
			code, message := ExplainError(err)
			if code == ExitError {
				stop(err)
				return
			}
			env.Console.Note("error: " + message)
			mu.Lock()
			defer mu.Unlock()
			problems = append(problems, Problem{f.Context, message})
		})
	}
	following.Wait()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if len(problems) > 0 {
		return &CodedError{Code: ExitError, Err: errors.New("no cluster is left to follow")}
	}
	return nil
}

// sharedWriter serializes writes by several goroutines, so that each line is written in one piece.
type sharedWriter struct {
	mu     *sync.Mutex
	to     io.Writer
	prefix string // prepended to each line
}

// Write implements io.Writer.
func (w *sharedWriter) Write(text []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.prefix == "" {
		return w.to.Write(text)
	}
	for line := range strings.Lines(string(text)) {
		if _, err := io.WriteString(w.to, w.prefix+line); err != nil {
			return 0, err
		}
	}
	return len(text), nil
}
