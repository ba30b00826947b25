// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restarts

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

// reference is a command-line argument that names a ScheduledRestart, or the workload that it
// restarts.
type reference struct {
	workload string // kind of the workload; "" if name is the name of a ScheduledRestart
	name     string
}

// parseReferences parses arguments of the form NAME or TYPE/NAME, and drops duplicates. TYPE is a
// kind of workload, or ScheduledRestart.
func parseReferences(args []string) ([]reference, error) {
	var refs []reference
	for _, arg := range args {
		ref := reference{}
		var ok bool
		if ref.name, ok = restartKind.Find(arg); !ok {
			resource, name, _ := strings.Cut(arg, "/")
			kind := workload.Named(resource)
			if kind == nil || name == "" {
				return nil, fmt.Errorf("%q is not a ScheduledRestart or a workload: write NAME, scheduledrestart/NAME, or a workload such as deployment/NAME", arg)
			}
			ref = reference{kind.Kind, name}
		}
		if !slices.Contains(refs, ref) {
			refs = append(refs, ref)
		}
	}
	return refs, nil
}

// matches reports whether the reference names r or the workload of r.
func (ref reference) matches(r *tidekeeperv1.ScheduledRestart) bool {
	if ref.workload == "" {
		return r.Name == ref.name
	}
	return r.Spec.TargetRef.Kind == ref.workload && r.Spec.TargetRef.Name == ref.name
}

// missing returns the error for a reference that matches no ScheduledRestart.
func (ref reference) missing(namespace string) error {
	if ref.workload == "" {
		return cmdutil.NotFound(restartKind.Name, namespace, ref.name)
	}
	return &cmdutil.CodedError{Code: cmdutil.ExitNotFound, Err: fmt.Errorf("no %s restarts the %s %q in the namespace %q", restartKind.Name, ref.workload, ref.name, namespace)}
}

// pick returns the ScheduledRestarts that match the references, in the order of the references and
// without duplicates. It returns an error if a reference matches no ScheduledRestart.
func pick(all []tidekeeperv1.ScheduledRestart, refs []reference, namespace string) ([]tidekeeperv1.ScheduledRestart, error) {
	var picked []tidekeeperv1.ScheduledRestart
	for _, ref := range refs {
		found := false
		for i := range all {
			r := &all[i]
			if !ref.matches(r) {
				continue
			}
			found = true
			if !slices.ContainsFunc(picked, func(p tidekeeperv1.ScheduledRestart) bool { return p.Name == r.Name && p.Namespace == r.Namespace }) {
				picked = append(picked, *r)
			}
		}
		if !found {
			return nil, ref.missing(namespace)
		}
	}
	return picked, nil
}

// targets implements the flags and arguments that select the ScheduledRestarts to change.
type targets struct {
	*cmdutil.Env
	cmdutil.Selection
	refs      []reference
	namespace string
}

func (t *targets) addTo(cmd *cobra.Command) {
	t.AddTo(cmd, "select restarts with these labels, such as app=web, instead of names", "select all restarts in the namespace, instead of names")
}

// Complete implements [cmdutil.Options].
func (t *targets) Complete(_ *cobra.Command, args []string) (err error) {
	if t.refs, err = parseReferences(args); err != nil {
		return err
	}
	if err = t.Selection.Complete(); err != nil {
		return err
	}
	t.namespace, err = t.Kubeconfig.Namespace(false)
	return err
}

// Validate implements [cmdutil.Options].
func (t *targets) Validate() error {
	return t.Selection.Validate(len(t.refs), "name restarts by NAME or TYPE/NAME")
}

// read returns the selected ScheduledRestarts, and a client with which to change them. It returns
// an error if a named object does not exist.
func (t *targets) read(ctx context.Context) ([]tidekeeperv1.ScheduledRestart, client.Client, error) {
	c, err := t.Kubeconfig.Client()
	if err != nil {
		return nil, nil, err
	}
	if len(t.refs) == 1 && t.refs[0].workload == "" {
		r, err := getRestart(ctx, c, t.namespace, t.refs[0].name)
		if err != nil {
			return nil, nil, err
		}
		return []tidekeeperv1.ScheduledRestart{*r}, c, nil
	}
	list, err := listRestarts(ctx, c, client.InNamespace(t.namespace), client.MatchingLabelsSelector{Selector: t.Selector})
	if err != nil {
		return nil, nil, cmdutil.AboutKind(err, restartKind.Name, t.namespace, "")
	}
	if len(t.refs) > 0 {
		list.Items, err = pick(list.Items, t.refs, t.namespace)
	} else if len(list.Items) == 0 {
		t.Console.NothingFound("scheduled restarts", t.namespace, t.LabelSelector != "")
	}
	return list.Items, c, err
}
