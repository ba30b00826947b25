// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package check implements kubectl tide check, which checks that Tidekeeper is installed and
// running.
package check

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
	"tidekeeper.dev/tidekeeper/internal/cli/maintenance"
	"tidekeeper.dev/tidekeeper/internal/kube/pages"
	"tidekeeper.dev/tidekeeper/internal/term"
	"tidekeeper.dev/tidekeeper/internal/view"
)

// Possible results of a check, as printed.
const (
	ok      = "ok"
	failed  = "failed"
	warning = "warning"
	unknown = "unknown"
)

// none is the message of the check of a kind if the cluster contains no objects of this kind.
const none = "there are none"

const nodeMaintenance = "NodeMaintenance"

// result is the outcome of a single check, as printed.
type result struct {
	Check   string `json:"check"`
	Result  string `json:"result"`
	Message string `json:"message"`
}

// options holds the flags and arguments of the command check.
type options struct {
	*cmdutil.Env
	timeout cmdutil.Duration
	output  cmdutil.DataOutput

	namespace string
}

// NewCommand returns the command check.
func NewCommand(e *cmdutil.Env) *cobra.Command {
	o := &options{Env: e}
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check the installation: kinds, manager, your rights",
		Long: `check reports whether the cluster serves Tidekeeper's kinds, whether a manager leads,
whether the manager has observed all NodePools, ScheduledRestarts and NodeMaintenances, and
what you are allowed to do. The exit code is 0 unless a check failed. A manager without leader
election has no lease: then only unobserved objects show that no manager is running. With
--timeout, a manager that does not lead by then is a failure.

To check the manager's own rights, run tidekeeper check, as helm test does.`,
		Example: `  kubectl tide check
  kubectl tide check --timeout 1m      # after an installation: wait for a leader`,
		Args: cmdutil.NoArguments,
		RunE: cmdutil.RunE(o),
	}
	cmd.Flags().Var(&o.timeout, "timeout", "how long to wait for a manager to lead, such as 1m")
	o.output.Shows([]result{}).AddTo(cmd)
	return cmd
}

// Complete implements [cmdutil.Options].
func (o *options) Complete(*cobra.Command, []string) (err error) {
	o.namespace, err = o.Kubeconfig.Namespace(false)
	return err
}

// Validate implements [cmdutil.Options].
func (o *options) Validate() error { return o.output.Validate() }

// Run implements [cmdutil.Options].
func (o *options) Run(ctx context.Context) error {
	c, err := o.Kubeconfig.Client()
	if err != nil {
		return err
	}
	results, err := o.check(ctx, c)
	if err != nil {
		return err
	}
	if done, err := o.output.Print(o.Console.Out, results); done && err != nil {
		return err
	} else if !done {
		if err := o.Console.Write(table(results)); err != nil {
			return err
		}
	}
	for _, r := range results {
		if r.Result == failed {
			return &cmdutil.CodedError{Code: cmdutil.ExitError}
		}
	}
	return nil
}

func (o *options) check(ctx context.Context, c client.Client) ([]result, error) {
	var pools, restarts, maintenances view.Unobserved
	poolResult, err := o.observed(ctx, c, &pools, "NodePool", func() client.ObjectList { return &tidekeeperv1.NodePoolList{} })
	if err != nil {
		return nil, err
	}
	restartResult, err := o.observed(ctx, c, &restarts, "ScheduledRestart", func() client.ObjectList { return &tidekeeperv1.ScheduledRestartList{} })
	if err != nil {
		return nil, err
	}
	kinds, served, err := o.kinds(ctx, c)
	if err != nil {
		return nil, err
	}
	var maintenanceResult result
	if served {
		maintenanceResult, err = o.observed(ctx, c, &maintenances, nodeMaintenance, func() client.ObjectList { return &tidekeeperv1.NodeMaintenanceList{} })
		if err != nil {
			return nil, err
		}
	}
	manager, m, err := o.manager(ctx, c, pools.Count+restarts.Count+maintenances.Count > 0)
	if err != nil {
		return nil, err
	}
	rights, err := o.rights(ctx, c)
	if err != nil {
		return nil, err
	}
	results := []result{kinds, manager, poolResult, restartResult}
	if served {
		results = append(results, carriedOut(maintenanceResult, maintenances, m))
	}
	return append(results, rights), nil
}

// carriedOut returns r, the result of the check that the manager has observed all NodeMaintenances.
// If NodeMaintenances exist but the leader does not run the NodeMaintenance controller, which is
// off by default, it returns a failed result instead.
func carriedOut(r result, unobserved view.Unobserved, m view.Manager) result {
	exist := unobserved.Count+unobserved.Recent > 0 || r.Result == ok && r.Message != none
	if exist && m.NotRunning(maintenance.ControllerName) {
		return result{r.Check, failed, cmdutil.NotRunning(maintenance.ControllerName) + ", and there are NodeMaintenances"}
	}
	return r
}

// kinds checks that the cluster serves the kinds Freeze and NodeMaintenance, which early versions
// of the CRDs lack. It does not check NodePool and ScheduledRestart, because other checks list
// their objects. maintained is true if NodeMaintenances can be listed.
func (o *options) kinds(ctx context.Context, c client.Client) (r result, maintained bool, err error) {
	served, unserved, unread := []string{"NodePool", "ScheduledRestart"}, []string{}, []string{}
	for _, kind := range []struct {
		name string
		list client.ObjectList
	}{{"Freeze", &tidekeeperv1.FreezeList{}}, {nodeMaintenance, &tidekeeperv1.NodeMaintenanceList{}}} {
		switch err := c.List(ctx, kind.list, client.Limit(1)); {
		case err == nil:
			served = append(served, kind.name)
			maintained = maintained || kind.name == nodeMaintenance
		case apierrors.IsNotFound(err):
			unserved = append(unserved, kind.name)
		case apierrors.IsForbidden(err):
			unread = append(unread, kind.name+"s")
		default:
			return result{}, false, err
		}
	}
	r = result{"kinds", ok, "the cluster serves " + joinAnd(served)}
	if len(unserved) > 0 {
		r.Result = warning
		r.Message += ", but not " + joinAnd(unserved) + ": its CRDs are of an earlier version"
	}
	if len(unread) > 0 {
		r.Message += "; you may not list " + joinAnd(unread)
	}
	return r, maintained, nil
}

// joinAnd joins words with commas, and with "and" before the last word.
func joinAnd(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " and " + words[last]
}

// observed checks that the manager has observed all objects of a kind, and counts the other objects
// in unobserved. If the user is not allowed to list ScheduledRestarts in all namespaces, it checks
// only the current namespace. The function empty returns an empty list of the kind.
func (o *options) observed(ctx context.Context, c client.Client, unobserved *view.Unobserved, kind string, empty func() client.ObjectList) (result, error) {
	r, err := o.observedIn(ctx, c, "", unobserved, kind, empty)
	if err != nil || r.Result != unknown || kind != "ScheduledRestart" || unobserved.Recent > 0 {
		return r, err
	}
	here, err := o.observedIn(ctx, c, o.namespace, unobserved, kind, empty)
	if err != nil || here.Result == unknown {
		return r, err
	}
	here.Message += " in the namespace " + o.namespace + "; you may not list the others"
	return here, nil
}

// observedIn is like observed, but checks the objects in a single namespace, or in all namespaces
// if namespace is "".
func (o *options) observedIn(ctx context.Context, c client.Client, namespace string, unobserved *view.Unobserved, kind string, empty func() client.ObjectList) (result, error) {
	count := 0
	err := pages.Each(ctx, c, empty, func(page client.ObjectList) {
		switch list := page.(type) {
		case *tidekeeperv1.NodePoolList:
			for i := range list.Items {
				unobserved.Add(kind, &list.Items[i], list.Items[i].Status.ObservedGeneration, o.Now())
			}
			count += len(list.Items)
		case *tidekeeperv1.ScheduledRestartList:
			for i := range list.Items {
				unobserved.AddRestart(&list.Items[i], o.Now())
			}
			count += len(list.Items)
		case *tidekeeperv1.NodeMaintenanceList:
			for i := range list.Items {
				unobserved.Add(kind, &list.Items[i], list.Items[i].Status.ObservedGeneration, o.Now())
			}
			count += len(list.Items)
		}
	}, client.InNamespace(namespace))
	r := result{Check: strings.ToLower(kind) + "s"}
	switch {
	case apierrors.IsForbidden(err):
		r.Result, r.Message = unknown, err.Error()
	case err != nil:
		return r, cmdutil.AboutKind(err, kind, "", "")
	case unobserved.Count > 0:
		r.Result, r.Message = failed, unobserved.Message(o.Now())
	case unobserved.Recent > 0:
		r.Result = unknown
		r.Message = fmt.Sprintf("%d of %d changed a moment ago and have not been observed yet: check again in a few seconds", unobserved.Recent, count)
	case count == 0:
		r.Result, r.Message = ok, none
	default:
		r.Result, r.Message = ok, fmt.Sprintf("the manager has observed %d of %d", count, count)
	}
	return r, nil
}

// manager checks that a manager holds the leader election lease. It also returns the state of the
// manager. unobserved is true if some objects have not been observed by any manager, which is
// evidence that no manager is running.
func (o *options) manager(ctx context.Context, c client.Client, unobserved bool) (r result, m view.Manager, err error) {
	r = result{Check: "manager"}
	err = wait.PollUntilContextTimeout(ctx, time.Second, o.timeout.Duration, true, func(context.Context) (done bool, err error) {
		m, err = cmdutil.Manager(ctx, o.Env, c)
		return m.Leader != "", err
	})
	switch {
	case apierrors.IsForbidden(err):
		r.Result, r.Message = unknown, err.Error()
	case err != nil && !wait.Interrupted(err):
		return r, m, err
	case ctx.Err() != nil:
		return r, m, ctx.Err()
	case m.Leader != "":
		r.Result, r.Message = ok, fmt.Sprintf("%s leads (namespace %s)", m.Leader, m.Namespace)
	case m.Namespace != "":
		r.Result, r.Message = failed, fmt.Sprintf("%s: see kubectl -n %s get pods, and their logs", m.Problem, m.Namespace)
	case o.timeout.Duration > 0:
		r.Result, r.Message = failed, fmt.Sprintf("no manager leads after %s: %s; see the pods of the manager, and their logs", o.timeout.Duration, m.Problem)
	case unobserved:
		r.Result, r.Message = failed, m.Problem+", and there are objects that no manager has observed: install or start a manager (docs/tasks/install-with-helm.md)"
	default:
		r.Result, r.Message = unknown, m.Problem+": either no manager is running, or it runs without leader election"
	}
	return r, m, nil
}

// rights checks the user's permissions. A missing permission is a warning, not a failure, because
// not every user needs every permission.
func (o *options) rights(ctx context.Context, c client.Client) (result, error) {
	r := result{Check: "your rights", Result: ok, Message: "you may use every command"}
	var denied []string
	for _, need := range []struct {
		attributes authorizationv1.ResourceAttributes
		text       string
	}{
		{authorizationv1.ResourceAttributes{Verb: "list", Group: tidekeeperv1.GroupName, Resource: "nodepools"}, "list NodePools (needed by pools)"},
		{authorizationv1.ResourceAttributes{Verb: "list", Resource: "nodes"}, "list nodes (needed by pools describe, pools plan)"},
		{authorizationv1.ResourceAttributes{Verb: "list", Resource: "pods"}, "list pods in all namespaces (needed by pools describe, pools plan)"},
		{authorizationv1.ResourceAttributes{Verb: "list", Resource: "pods", Namespace: o.namespace}, "list pods in the namespace " + o.namespace + " (needed by pods)"},
		{authorizationv1.ResourceAttributes{Verb: "list", Group: tidekeeperv1.GroupName, Resource: "scheduledrestarts", Namespace: o.namespace},
			"list ScheduledRestarts in the namespace " + o.namespace + " (needed by restarts)"},
		{authorizationv1.ResourceAttributes{Verb: "patch", Group: tidekeeperv1.GroupName, Resource: "scheduledrestarts", Namespace: o.namespace},
			"patch ScheduledRestarts in the namespace " + o.namespace + " (needed by restarts now, suspend, resume)"},
		{authorizationv1.ResourceAttributes{Verb: "create", Group: tidekeeperv1.GroupName, Resource: "freezes"}, "create Freezes (needed by freeze)"},
		{authorizationv1.ResourceAttributes{Verb: "delete", Group: tidekeeperv1.GroupName, Resource: "freezes"}, "delete Freezes (needed by thaw)"},
		{authorizationv1.ResourceAttributes{Verb: "list", Group: tidekeeperv1.GroupName, Resource: "nodemaintenances"}, "list NodeMaintenances (needed by maintenance)"},
		{authorizationv1.ResourceAttributes{Verb: "patch", Group: tidekeeperv1.GroupName, Resource: "nodemaintenances"}, "patch NodeMaintenances (needed by maintenance suspend, resume)"},
		{authorizationv1.ResourceAttributes{Verb: "patch", Resource: "nodes"}, "patch nodes (needed by maintenance done)"},
	} {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &need.attributes}}
		if err := c.Create(ctx, review); err != nil {
			return r, err
		}
		if !review.Status.Allowed {
			denied = append(denied, need.text)
		}
	}
	if len(denied) > 0 {
		r.Result, r.Message = warning, "you may not "+strings.Join(denied, "; ")
	}
	return r, nil
}

// colors maps each result of a check to a severity, which determines the color of the result in the
// table.
var colors = map[string]view.Severity{ok: view.Good, failed: view.Bad, warning: view.Warning, unknown: view.Warning}

func table(results []result) *term.Table {
	t := &term.Table{Columns: []term.Column{{Header: "CHECK"}, {Header: "RESULT"}, {Header: "MESSAGE"}}}
	for _, r := range results {
		t.Rows = append(t.Rows, []term.Cell{term.Text(r.Check), term.Painted(cmdutil.ColorOf(colors[r.Result]), r.Result), term.Text(r.Message)})
	}
	return t
}
