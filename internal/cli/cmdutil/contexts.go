// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cmdutil

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"tidekeeper.dev/tidekeeper/internal/text"
)

const (
	flagContexts = "contexts"
	// longestAnswer is the maximum length of an error message from a cluster.
	longestAnswer = 300
	// mostContexts is the maximum number of contexts in a message.
	mostContexts = 20
)

// ofOneCluster lists the flags that apply to a single cluster. With several clusters, a token or certificate
// would be sent to all of them.
var ofOneCluster = []string{
	"context", "cluster", "user", "server", "token", "client-certificate", "client-key", "certificate-authority", "tls-server-name",
}

// Contexts is the flag --contexts of commands that support several clusters.
type Contexts struct {
	// Names are the names of the contexts; empty without the flag.
	Names []string
}

// AddTo adds the flag to a command.
func (c *Contexts) AddTo(e *Env, cmd *cobra.Command) {
	cmd.Flags().StringSliceVar(&c.Names, flagContexts, nil, "show the clusters of several contexts together, such as prod,edge")
	_ = cmd.RegisterFlagCompletionFunc(flagContexts, e.Kubeconfig.completeContexts)
}

// Given reports whether the flag was set.
func (c *Contexts) Given() bool { return len(c.Names) > 0 }

// Complete refuses contexts that the kubeconfig does not have, and flags that apply to a single cluster.
func (c *Contexts) Complete(e *Env, cmd *cobra.Command) error {
	if !cmd.Flags().Changed(flagContexts) {
		return nil
	}
	known, err := e.Kubeconfig.contextNames()
	if err != nil {
		return err
	}
	for i := range c.Names {
		c.Names[i] = strings.TrimSpace(c.Names[i])
	}
	for _, name := range ofOneCluster {
		if f := cmd.Flags().Lookup(name); f != nil && f.Changed {
			return fmt.Errorf("write either --%s or --%s: %s", flagContexts, name, namesOfContexts(known))
		}
	}
	return checkContexts(c.Names, known)
}

// checkContexts returns an error if the names contain duplicates or unknown contexts.
func checkContexts(names, known []string) error {
	mistake := ""
	switch {
	case len(names) == 0:
		mistake = "write the names of contexts, such as prod,edge"
	case slices.Contains(names, ""):
		mistake = "a name is empty"
	}
	for i, name := range names {
		switch {
		case mistake != "":
		case !slices.Contains(known, name):
			mistake = fmt.Sprintf("there is no context %q", name)
		case slices.Contains(names[:i], name):
			mistake = fmt.Sprintf("the context %q is given twice", name)
		}
	}
	if mistake == "" {
		return nil
	}
	return fmt.Errorf("--%s: %s: %s", flagContexts, mistake, namesOfContexts(known))
}

// namesOfContexts lists the contexts of the kubeconfig for a message.
func namesOfContexts(known []string) string {
	named := strings.Join(known[:min(len(known), mostContexts)], ", ")
	if more := len(known) - mostContexts; more > 0 {
		named += fmt.Sprintf(" and %d more", more)
	}
	return "the kubeconfig has " + named
}

// nextContexts returns the completions of a comma-separated list of contexts.
func nextContexts(known []string, toComplete string) []string {
	before := toComplete[:strings.LastIndex(toComplete, ",")+1]
	written := strings.Split(before, ",")
	lists := []string{}
	for _, name := range known {
		if !slices.Contains(written, name) && strings.HasPrefix(before+name, toComplete) {
			lists = append(lists, before+name)
		}
	}
	return lists
}

// ForContext returns a copy of the environment for another context.
func (e *Env) ForContext(name string) *Env {
	other := *e
	other.Kubeconfig = e.Kubeconfig.ForContext(name)
	return &other
}

// Answer is the answer of one of several clusters.
type Answer[T any] struct {
	Context string
	Value   T
	// Problem explains why there is no value; "" if there is a value.
	Problem string
}

// Problem is the reason for which a cluster cannot be shown.
type Problem struct {
	Context string `json:"context"`
	Error   string `json:"error"`
}

// AskContexts calls ask for the clusters of all contexts concurrently, and returns their answers in the order
// of the contexts. It waits for each cluster for at most --request-timeout, or ten seconds. Notes about a
// cluster name its context. The error is the error of ctx.
func AskContexts[T any](ctx context.Context, e *Env, contexts []string, ask func(context.Context, *Env) (T, error)) ([]Answer[T], error) {
	within, err := e.Kubeconfig.answerWithin()
	if err != nil {
		return nil, err
	}
	return AskContextsWithin(ctx, e, within, contexts, ask)
}

// AskContextsWithin is [AskContexts] with another time limit.
func AskContextsWithin[T any](ctx context.Context, e *Env, within time.Duration, contexts []string, ask func(context.Context, *Env) (T, error)) ([]Answer[T], error) {
	type reply struct {
		value T
		notes bytes.Buffer
		err   error
	}
	answers, notes := make([]Answer[T], len(contexts)), make([]string, len(contexts))
	var asking sync.WaitGroup
	for i, name := range contexts {
		asking.Go(func() {
			bounded, cancel := context.WithTimeout(ctx, within)
			defer cancel()
			// A credential plugin may hang, too, and does not support cancellation.
			replies := make(chan *reply, 1)
			go func() {
				r := &reply{}
				env := e.ForContext(name)
				env.Console.ErrOut = &r.notes
				r.value, r.err = ask(bounded, env)
				replies <- r
			}()
			answers[i].Context = name
			select {
			case r := <-replies:
				notes[i] = r.notes.String()
				if answers[i].Value = r.value; r.err != nil {
					answers[i].Problem = problemOf(r.err, within)
				}
			case <-bounded.Done():
				answers[i].Problem = noAnswer(within)
			}
		})
	}
	asking.Wait()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	for i, text := range notes {
		for line := range strings.Lines(text) {
			e.Console.Note(contexts[i] + ": " + line)
		}
	}
	return answers, nil
}

func noAnswer(within time.Duration) string { return fmt.Sprintf("no answer within %s", within) }

// problemOf formats the error of a cluster as one line.
func problemOf(err error, within time.Duration) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return noAnswer(within)
	}
	_, message := ExplainError(err)
	return text.Shorten(strings.Join(strings.Fields(message), " "), longestAnswer)
}

// ProblemsOf returns the clusters that cannot be shown.
func ProblemsOf[T any](answers []Answer[T]) []Problem {
	var problems []Problem
	for _, a := range answers {
		if a.Problem != "" {
			problems = append(problems, Problem{a.Context, a.Problem})
		}
	}
	return problems
}

// Unanswered returns an error if some clusters cannot be shown. As with kubectl, the objects of the other
// clusters are printed nevertheless, and the exit code is 1.
func Unanswered(problems []Problem) error {
	if len(problems) == 0 {
		return nil
	}
	said := make([]string, len(problems))
	for i, p := range problems {
		said[i] = p.Context + ": " + p.Error
	}
	return &CodedError{Code: ExitError, Err: errors.New(strings.Join(said, "; "))}
}
