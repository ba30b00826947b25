// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package pools

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
	"tidekeeper.dev/tidekeeper/internal/drain"
	"tidekeeper.dev/tidekeeper/internal/kube/lists"
	"tidekeeper.dev/tidekeeper/internal/nodepool/plan"
	"tidekeeper.dev/tidekeeper/internal/nodepool/preview"
	"tidekeeper.dev/tidekeeper/internal/term"
	"tidekeeper.dev/tidekeeper/internal/view"
)

// planOptions holds the flags and arguments of pools plan.
type planOptions struct {
	*cmdutil.Env
	files   genericclioptions.FileNameFlags
	deleted []string
	output  cmdutil.DataOutput
}

func newPlanCommand(e *cmdutil.Env) *cobra.Command {
	o := &planOptions{Env: e, files: genericclioptions.FileNameFlags{
		Usage: "files or directories with NodePools, or - for stdin", Filenames: &[]string{}, Recursive: new(bool), Kustomize: new(string),
	}}
	cmd := &cobra.Command{
		Use:   "plan (-f FILE | -k DIRECTORY | --delete NAME)",
		Short: "Preview of applying a manifest, node by node and pod by pod",
		Long: `plan shows what would happen if NodePools were applied or deleted, without doing
it: which nodes join or leave, which of their labels, annotations and taints change, which
keys stay with an older pool, how the RuntimeClass changes, and which pods would be
evicted, or could not be rescheduled to the same node. Of pods that would be evicted within
budgets, it names the PodDisruptionBudgets that do not allow it now.

The API server validates the manifest, as in kubectl apply --dry-run=server, which
requires the right to apply it. The rest is computed by the same code that the manager
runs.

Exit codes: 0 nothing would change, 2 something would change (kubectl diff exits with 1
for that), 1 an error, or those of kubectl tide --help.`,
		Example: `  kubectl tide pools plan -f worker.yaml
  kubectl tide pools plan -f pools/ -o wide             # all nodes and pods by name
  kustomize build . | kubectl tide pools plan -f -
  kubectl tide pools plan --delete worker -o json | jq '.pods[] | select(.outcome == "Evicted")'`,
		Args: noNames,
		RunE: cmdutil.RunE(o),
	}
	o.files.AddFlags(cmd.Flags())
	cmd.Flags().Lookup("recursive").Usage = "also read the subdirectories of -f"
	cmd.Flags().Lookup("kustomize").Usage = "a kustomization directory"
	cmd.Flags().StringSliceVar(&o.deleted, "delete", nil, "preview the deletion of these pools")
	o.output.Shows(&view.Plan{}).AddTo(cmd, "wide")
	_ = cmd.RegisterFlagCompletionFunc("delete", e.Kubeconfig.CompleteNames(emptyList))
	return cmd
}

// noNames rejects arguments, because the command plan only accepts the flags -f, -k and --delete.
func noNames(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return fmt.Errorf("%s takes no names: plan a manifest with -f FILE or -k DIRECTORY, or the deletion of a pool with --delete NAME", cmd.CommandPath())
}

// Complete implements [cmdutil.Options].
func (o *planOptions) Complete(*cobra.Command, []string) error { return nil }

// Validate implements [cmdutil.Options].
func (o *planOptions) Validate() error {
	if !o.hasManifests() && len(o.deleted) == 0 {
		return fmt.Errorf("say what to plan: -f FILE, -k DIRECTORY or --delete NAME")
	}
	return o.output.Validate()
}

func (o *planOptions) hasManifests() bool {
	return len(*o.files.Filenames) > 0 || *o.files.Kustomize != ""
}

// Run implements [cmdutil.Options].
func (o *planOptions) Run(ctx context.Context) error {
	plan, err := o.plan(ctx)
	if err != nil {
		return err
	}
	if done, err := o.output.Print(o.Console.Out, plan); err != nil {
		return err
	} else if !done {
		if err := printPlan(o.Console.Out, plan, o.output.Wide(), o.Console.Screen); err != nil {
			return err
		}
	}
	if plan.Changes() {
		return &cmdutil.CodedError{Code: cmdutil.ExitNotDone}
	}
	return nil
}

// plan computes the changes that applying and deleting the NodePools would cause. It sends a
// dry-run request for each pool, and lists pools, nodes and pods.
func (o *planOptions) plan(ctx context.Context) (*view.Plan, error) {
	manifests, err := o.read()
	if err != nil {
		return nil, err
	}
	c, err := o.Kubeconfig.Client()
	if err != nil {
		return nil, err
	}
	pools, err := o.changePools(ctx, c, manifests)
	if err != nil {
		return nil, err
	}
	plan := &view.Plan{Nodes: []preview.Node{}}
	if plan.Pools, err = o.planPools(ctx, c, pools); err != nil {
		return nil, err
	}
	nodes := &corev1.NodeList{}
	if err := c.List(ctx, nodes, cmdutil.FromCache()); err != nil {
		return nil, err
	}
	o.noteEmptyPools(pools, nodes.Items)
	plan.Nodes = append(plan.Nodes, preview.Nodes(pools.before, pools.after, nodes.Items)...)

	pods, err := affectedPods(ctx, c, plan)
	switch {
	case apierrors.IsForbidden(err):
		o.Console.Note("the effect on pods is left out: " + err.Error())
		return plan, nil
	case err != nil:
		return nil, err
	}
	plan.Pods = append([]preview.Pod{}, preview.WithDeletedRuntimeClasses(preview.Pods(plan.Nodes, pods), plan.DeletedRuntimeClasses(), pods)...)
	plan.Blockers, err = budgetBlockers(ctx, c, plan.Pods, pods, o.Now())
	if apierrors.IsForbidden(err) {
		o.Console.Note("PodDisruptionBudgets are not evaluated: " + err.Error())
		err = nil
	}
	return plan, err
}

// budgetBlockers returns the PodDisruptionBudgets that currently block an eviction that the plan
// would cause. It ignores evictions that disregard PodDisruptionBudgets. If there are no other
// evictions, it does not list PodDisruptionBudgets.
func budgetBlockers(ctx context.Context, c client.Client, planned []preview.Pod, list []corev1.Pod, now time.Time) ([]drain.Blocker, error) {
	evicted := sets.New[client.ObjectKey]()
	for _, p := range planned {
		if p.WithinBudgets {
			evicted.Insert(client.ObjectKey{Namespace: p.Namespace, Name: p.Name})
		}
	}
	if len(evicted) == 0 {
		return nil, nil
	}
	budgets := &policyv1.PodDisruptionBudgetList{}
	if err := c.List(ctx, budgets, cmdutil.FromCache()); err != nil {
		return nil, err
	}
	var pods []*corev1.Pod
	for i := range list {
		if evicted.Has(client.ObjectKeyFromObject(&list[i])) {
			pods = append(pods, &list[i])
		}
	}
	blockers := drain.NewWorld(budgets.Items, drain.Volumes{}).Blockers(&corev1.Node{}, pods, now)
	return slices.DeleteFunc(blockers, func(b drain.Blocker) bool { return b.Reason != drain.Budget && b.Reason != drain.SeveralBudgets }), nil
}

// affectedPods returns at least the pods that the plan may affect. It lists all pods if the plan
// deletes a RuntimeClass, because the pods of a RuntimeClass can be on any node.
func affectedPods(ctx context.Context, c client.Client, plan *view.Plan) ([]corev1.Pod, error) {
	if len(plan.DeletedRuntimeClasses()) > 0 {
		return cmdutil.AllPods(ctx, c)
	}
	return cmdutil.PodsOf(ctx, c, preview.NodesWithAffectedPods(plan.Nodes))
}

// noteEmptyPools prints a note about each applied pool that would have no nodes, because the pool's
// selector may be misspelled.
func (o *planOptions) noteEmptyPools(pools *poolChanges, all []corev1.Node) {
	for _, change := range pools.changes {
		selector, err := plan.Selector(change.after)
		if err == nil && change.after.DeletionTimestamp.IsZero() && len(view.MembersOf(lists.Pointers(all), selector)) == 0 {
			o.Console.Note(fmt.Sprintf("NodePool %q: no node matches %s", change.name, selector))
		}
	}
}

// read returns the NodePools in the manifests of -f and -k. It prints a note if it skips objects of
// other kinds.
func (o *planOptions) read() ([]*unstructured.Unstructured, error) {
	if !o.hasManifests() {
		return nil, nil
	}
	manifests, others, err := readPools(o.Env, o.files.ToOptions())
	if others > 0 {
		fmt.Fprintf(o.Console.ErrOut, "note: skipped %s of other kinds\n", term.Plural(others, "object"))
	}
	return manifests, err
}

// poolChange is the planned change of a NodePool.
type poolChange struct {
	name          string
	action        string
	before, after *tidekeeperv1.NodePool // before is nil for a new pool
}

// poolChanges holds all pools of the cluster as they are before and after the plan, and the planned
// changes.
type poolChanges struct {
	before, after []*tidekeeperv1.NodePool
	changes       []poolChange
}

// changePools computes the planned changes of pools by dry-run requests.
func (o *planOptions) changePools(ctx context.Context, c client.Client, manifests []*unstructured.Unstructured) (*poolChanges, error) {
	list, err := listPools(ctx, c)
	if err != nil {
		return nil, err
	}
	all := &poolChanges{}
	live := map[string]*tidekeeperv1.NodePool{}
	for i := range list.Items {
		pool := &list.Items[i]
		live[pool.Name] = pool
		all.before = append(all.before, pool)
	}
	for _, manifest := range manifests {
		name := manifest.GetName()
		if slices.Contains(o.deleted, name) {
			return nil, fmt.Errorf("the NodePool %q is both to be applied and deleted", name)
		}
		change, err := applied(ctx, c, manifest, live[name])
		if err != nil {
			return nil, err
		}
		all.changes = append(all.changes, change)
	}
	for _, name := range o.deleted {
		change, err := o.deletedPool(ctx, c, name, live[name])
		if err != nil {
			return nil, err
		}
		all.changes = append(all.changes, change)
	}
	all.after = slices.DeleteFunc(slices.Clone(all.before), func(pool *tidekeeperv1.NodePool) bool {
		return slices.ContainsFunc(all.changes, func(c poolChange) bool { return c.name == pool.Name })
	})
	for _, change := range all.changes {
		all.after = append(all.after, change.after)
	}
	return all, nil
}

// applied returns the change of a pool that applying a manifest would cause. live is the existing
// pool, or nil.
func applied(ctx context.Context, c client.Client, manifest *unstructured.Unstructured, live *tidekeeperv1.NodePool) (poolChange, error) {
	pool, err := dryApply(ctx, c, manifest, live)
	change := poolChange{name: manifest.GetName(), action: view.PoolUnchanged, before: live, after: pool}
	switch {
	case err != nil:
	case live == nil:
		change.action = view.PoolCreated
	case differs(live, pool):
		change.action = view.PoolChanged
	}
	return change, err
}

// deletedPool returns the change that deleting a pool would cause. live is the existing pool; if it
// is nil, deletedPool returns an error.
func (o *planOptions) deletedPool(ctx context.Context, c client.Client, name string, live *tidekeeperv1.NodePool) (poolChange, error) {
	if live == nil {
		return poolChange{}, cmdutil.NotFound(poolKind.Name, "", name)
	}
	if err := c.Delete(ctx, live.DeepCopy(), client.DryRunAll); err != nil {
		return poolChange{}, err
	}
	gone := live.DeepCopy()
	gone.DeletionTimestamp = &metav1.Time{Time: o.Now()}
	change := poolChange{name: name, action: view.PoolDeleted, before: live, after: gone}
	if !live.DeletionTimestamp.IsZero() {
		change.action = view.PoolUnchanged
	}
	return change, nil
}

// differs reports whether two versions of a pool differ in the spec, labels or annotations.
func differs(a, b *tidekeeperv1.NodePool) bool {
	return !equality.Semantic.DeepEqual(a.Spec, b.Spec) || !equality.Semantic.DeepEqual(a.Labels, b.Labels) || !equality.Semantic.DeepEqual(a.Annotations, b.Annotations)
}

// planPools returns the planned changes of the NodePools and of their RuntimeClasses. It reads
// RuntimeClasses only if a pool names a container runtime handler, because other pools have no
// RuntimeClass.
func (o *planOptions) planPools(ctx context.Context, c client.Client, pools *poolChanges) ([]view.PoolPlan, error) {
	var plans []view.PoolPlan
	anyHandler := false
	for _, change := range pools.changes {
		plans = append(plans, view.PoolPlan{Name: change.name, Action: change.action})
		anyHandler = anyHandler || change.after.Spec.Handler != "" || change.before != nil && change.before.Spec.Handler != ""
	}
	if !anyHandler {
		return plans, nil
	}
	list := &nodev1.RuntimeClassList{}
	if err := c.List(ctx, list); apierrors.IsForbidden(err) {
		o.Console.Note("the RuntimeClass is left out: " + err.Error())
		return plans, nil
	} else if err != nil {
		return nil, err
	}
	for i, change := range pools.changes {
		var existing *nodev1.RuntimeClass
		for j := range list.Items {
			if list.Items[j].Name == tidekeeperv1.RuntimeClassPrefix+change.name {
				existing = &list.Items[j]
			}
		}
		plans[i].RuntimeClass = preview.OfRuntimeClass(change.before, change.after, existing)
	}
	return plans, nil
}
