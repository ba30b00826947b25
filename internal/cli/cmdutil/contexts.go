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
	// longestAnswer is the maximum length, in bytes, of the error message for a cluster that could
	// not be read.
	longestAnswer = 300
	// mostContexts is the maximum number of contexts listed in an error message.
	mostContexts = 20
)

// ofOneCluster lists the connection flags that apply to a single cluster. They are rejected in
// combination with --contexts, because a token or certificate would otherwise be sent to several
// clusters.
var ofOneCluster = []string{
	"context", "cluster", "user", "server", "token", "client-certificate", "client-key", "certificate-authority", "tls-server-name",
}

// Contexts implements the flag --contexts, which runs a command on several clusters.
type Contexts struct {
	// Names lists the kubeconfig contexts in the flag --contexts. It is empty if the flag is not
	// set.
	Names []string
}

// AddTo adds the flag --contexts to a command.
func (c *Contexts) AddTo(e *Env, cmd *cobra.Command) {
	cmd.Flags().StringSliceVar(&c.Names, flagContexts, nil, "show the clusters of several contexts together, such as prod,edge")
	_ = cmd.RegisterFlagCompletionFunc(flagContexts, e.Kubeconfig.completeContexts)
}

// Given reports whether --contexts was set.
func (c *Contexts) Given() bool { return len(c.Names) > 0 }

// Complete validates the flag --contexts. It returns an error if the kubeconfig lacks one of the
// contexts, or if the user combined --contexts with a flag that applies to a single cluster.
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

// checkContexts rejects empty and duplicate context names, and names that are not in known, the
// contexts of the kubeconfig.
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

// namesOfContexts formats the kubeconfig's context names for an error message.
func namesOfContexts(known []string) string {
	named := strings.Join(known[:min(len(known), mostContexts)], ", ")
	if more := len(known) - mostContexts; more > 0 {
		named += fmt.Sprintf(" and %d more", more)
	}
	return "the kubeconfig has " + named
}

// nextContexts returns the completions for the last name in toComplete, a comma-separated list of
// contexts. It omits contexts that the list already contains.
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

// ForContext returns a copy of the environment that connects to the cluster of the named kubeconfig
// context.
func (e *Env) ForContext(name string) *Env {
	other := *e
	other.Kubeconfig = e.Kubeconfig.ForContext(name)
	return &other
}

// Answer is the result of reading one of several clusters.
type Answer[T any] struct {
	Context string
	Value   T
	// Problem is the reason why the cluster could not be read. It is "" if Value is valid.
	Problem string
}

// Problem names a cluster that could not be read, and the reason.
type Problem struct {
	Context string `json:"context"`
	Error   string `json:"error"`
}

// AskContexts calls ask concurrently for each context, and returns the answers in the order of the
// contexts. Each call is limited to --request-timeout, or ten seconds by default. Notes that a call
// prints to stderr are prefixed with the context. AskContexts itself fails only if
// --request-timeout is invalid or ctx is done.
func AskContexts[T any](ctx context.Context, e *Env, contexts []string, ask func(context.Context, *Env) (T, error)) ([]Answer[T], error) {
	within, err := e.Kubeconfig.answerWithin()
	if err != nil {
		return nil, err
	}
	return AskContextsWithin(ctx, e, within, contexts, ask)
}

// AskContextsWithin is like [AskContexts], but limits each call to the given duration.
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
			// Run ask in a separate goroutine, because a credential plugin may hang and ignore
			// cancellation.
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

// problemOf formats the error of reading a cluster as a single line. If err is a timeout, the line
// names `within`, the time limit for reading a cluster.
func problemOf(err error, within time.Duration) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return noAnswer(within)
	}
	_, message := ExplainError(err)
	return text.Shorten(strings.Join(strings.Fields(message), " "), longestAnswer)
}

// ProblemsOf lists the clusters that could not be read, with the reasons.
func ProblemsOf[T any](answers []Answer[T]) []Problem {
	var problems []Problem
	for _, a := range answers {
		if a.Problem != "" {
			problems = append(problems, Problem{a.Context, a.Problem})
		}
	}
	return problems
}

// Unanswered returns an error that lists the clusters that could not be read. It returns nil if all
// clusters were read. As in kubectl, the command still prints the objects of the other clusters,
// and exits with code 1.
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
