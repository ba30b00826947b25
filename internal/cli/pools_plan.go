// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/nodepool"
)

func (a *app) planPoolsCommand() *cobra.Command {
	files := genericclioptions.FileNameFlags{Usage: "files or directories with NodePools, or - for stdin", Filenames: &[]string{}, Recursive: new(bool), Kustomize: new(string)}
	var deleted []string
	var output data
	cmd := &cobra.Command{
		Use:   "plan (-f FILE | -k DIRECTORY | --delete NAME)",
		Short: "What applying a manifest would do, node by node and pod by pod",
		Long: `plan shows what would happen if NodePools were applied, or deleted, and does not do
it: which nodes join or leave, which of their labels, annotations and taints
change, which keys an older pool keeps, what becomes of the RuntimeClass, and
which pods a taint would evict, or could not come back once they end.

The API server checks the manifest, as in kubectl apply --dry-run=server, so that
takes the right to apply it. The rest is worked out by the same code that the
manager runs.

Exit codes: 0 nothing would change, 2 something would, 1 an error, or those of
kubectl tide --help.`,
		Example: `  kubectl tide pools plan -f worker.yaml
  kubectl tide pools plan -f pools/ -o wide             # all nodes and pods by name
  kustomize build . | kubectl tide pools plan -f -
  kubectl tide pools plan --delete worker -o json | jq '.pods[] | select(.fate == "Evicted")'`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := output.check(); err != nil {
				return err
			}
			plan, err := a.planPools(cmd.Context(), files.ToOptions(), deleted)
			if err != nil {
				return err
			}
			if done, err := output.print(a.out, plan); err != nil {
				return err
			} else if !done {
				if err := printPlan(a.out, plan, output.format == "wide", a.screen); err != nil {
					return err
				}
			}
			if plan.changes() {
				return &failure{code: exitChanges}
			}
			return nil
		},
	}
	files.AddFlags(cmd.Flags())
	cmd.Flags().Lookup("recursive").Usage = "also the directories in directories"
	cmd.Flags().Lookup("kustomize").Usage = "a directory for kustomize"
	cmd.Flags().StringSliceVar(&deleted, "delete", nil, "plan the deletion of these pools")
	output.addTo(cmd, "wide")
	_ = cmd.RegisterFlagCompletionFunc("delete", a.names(func() client.ObjectList { return &tidekeeperv1.NodePoolList{} }, true))
	return cmd
}

// poolsPlan is what would change. Its form is what -o json prints.
type poolsPlan struct {
	Pools []poolPlan             `json:"pools"`
	Nodes []nodepool.NodePreview `json:"nodes"`
	// Pods is null if they may not be read.
	Pods []nodepool.PodPreview `json:"pods"`
}

// poolPlan is what would become of a pool itself.
type poolPlan struct {
	Name   string `json:"name"`
	Action string `json:"action"` // Create, Change, Delete or None

	RuntimeClass *nodepool.RuntimeClassPreview `json:"runtimeClass,omitempty"`

	before, after *tidekeeperv1.NodePool
}

func (p *poolsPlan) changes() bool {
	return len(p.Nodes) > 0 || slices.ContainsFunc(p.Pools, func(p poolPlan) bool { return p.Action != "None" || p.RuntimeClass != nil })
}

// planPools works out what would change if these NodePools were applied and
// those deleted. It asks the API server for one thing per pool, and otherwise
// for a few lists, however many nodes and pods there are.
func (a *app) planPools(ctx context.Context, files resource.FilenameOptions, deleted []string) (*poolsPlan, error) {
	if len(files.Filenames) == 0 && files.Kustomize == "" && len(deleted) == 0 {
		return nil, fmt.Errorf("say what to plan: -f FILE, -k DIRECTORY or --delete NAME")
	}
	c, err := a.client()
	if err != nil {
		return nil, err
	}
	plan := &poolsPlan{Nodes: []nodepool.NodePreview{}}
	before, after, err := a.planThePoolsThemselves(ctx, c, plan, files, deleted)
	if err != nil {
		return nil, err
	}
	if err := a.planRuntimeClasses(ctx, c, plan); err != nil {
		return nil, err
	}
	nodes := &corev1.NodeList{}
	if err := c.List(ctx, nodes, fromCache()); err != nil {
		return nil, err
	}
	plan.Nodes = append(plan.Nodes, nodepool.PreviewNodes(before, after, nodes.Items)...)

	pods, err := podsOf(ctx, c, nodepool.NodesThatMovePods(plan.Nodes))
	switch {
	case apierrors.IsForbidden(err):
		fmt.Fprintln(a.errOut, "what becomes of pods is left out: "+oneLine(err.Error()))
		return plan, nil
	case err != nil:
		return nil, err
	}
	plan.Pods = append([]nodepool.PodPreview{}, nodepool.PreviewPods(plan.Nodes, pods)...)
	return plan, nil
}

// planThePoolsThemselves lets the API server say what would become of the pools,
// and returns all pools as they are and as they would be.
func (a *app) planThePoolsThemselves(ctx context.Context, c client.Client, plan *poolsPlan, files resource.FilenameOptions, deleted []string) (before, after []*tidekeeperv1.NodePool, err error) {
	var manifests []*unstructured.Unstructured
	if len(files.Filenames) > 0 || files.Kustomize != "" {
		var others int
		if manifests, others, err = a.readPools(files); err != nil {
			return nil, nil, err
		}
		if others > 0 {
			fmt.Fprintf(a.errOut, "%s of other kinds passed over.\n", plural(others, "object"))
		}
	}
	list, err := listPools(ctx, c, "")
	if err != nil {
		return nil, nil, err
	}
	live := map[string]*tidekeeperv1.NodePool{}
	for i := range list.Items {
		pool := &list.Items[i]
		live[pool.Name] = pool
		before = append(before, pool)
	}
	for _, manifest := range manifests {
		name := manifest.GetName()
		if slices.Contains(deleted, name) {
			return nil, nil, fmt.Errorf("the NodePool %q is to be applied and deleted: name it once", name)
		}
		pool, err := dryApply(ctx, c, manifest, live[name])
		if err != nil {
			return nil, nil, err
		}
		p := poolPlan{Name: name, Action: "None", before: live[name], after: pool}
		switch {
		case p.before == nil:
			p.Action = "Create"
		case differs(p.before, pool):
			p.Action = "Change"
		}
		plan.Pools = append(plan.Pools, p)
	}
	for _, name := range deleted {
		pool := live[name]
		if pool == nil {
			return nil, nil, &failure{exitNotFound, fmt.Errorf("there is no %s %q", poolKind, name)}
		}
		gone := pool.DeepCopy()
		if err := c.Delete(ctx, gone, client.DryRunAll); err != nil {
			return nil, nil, err
		}
		gone = pool.DeepCopy()
		gone.DeletionTimestamp = &metav1.Time{Time: a.now()}
		p := poolPlan{Name: name, Action: "Delete", before: pool, after: gone}
		if !pool.DeletionTimestamp.IsZero() {
			p.Action = "None"
		}
		plan.Pools = append(plan.Pools, p)
	}
	after = slices.DeleteFunc(slices.Clone(before), func(pool *tidekeeperv1.NodePool) bool {
		return slices.ContainsFunc(plan.Pools, func(p poolPlan) bool { return p.Name == pool.Name })
	})
	for _, p := range plan.Pools {
		after = append(after, p.after)
	}
	return before, after, nil
}

// differs tells whether a person would say that a pool has changed.
func differs(a, b *tidekeeperv1.NodePool) bool {
	return !equality.Semantic.DeepEqual(a.Spec, b.Spec) || !equality.Semantic.DeepEqual(a.Labels, b.Labels) || !equality.Semantic.DeepEqual(a.Annotations, b.Annotations)
}

// planRuntimeClasses adds what would become of the RuntimeClasses. Pools without
// a handler have none.
func (a *app) planRuntimeClasses(ctx context.Context, c client.Client, plan *poolsPlan) error {
	if !slices.ContainsFunc(plan.Pools, func(p poolPlan) bool {
		return p.after.Spec.Handler != "" || p.before != nil && p.before.Spec.Handler != ""
	}) {
		return nil
	}
	list := &nodev1.RuntimeClassList{}
	if err := c.List(ctx, list); apierrors.IsForbidden(err) {
		fmt.Fprintln(a.errOut, "the RuntimeClass is left out: "+oneLine(err.Error()))
		return nil
	} else if err != nil {
		return err
	}
	for i := range plan.Pools {
		p := &plan.Pools[i]
		var existing *nodev1.RuntimeClass
		for j := range list.Items {
			if list.Items[j].Name == nodepool.RuntimeClassName(p.Name) {
				existing = &list.Items[j]
			}
		}
		p.RuntimeClass = nodepool.PreviewRuntimeClass(p.before, p.after, existing)
	}
	return nil
}
