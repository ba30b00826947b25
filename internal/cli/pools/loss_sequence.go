// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package pools

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
	"tidekeeper.dev/tidekeeper/internal/view"
)

// sequenceOptions holds the flags of pools loss that extend the loss of the nodes in --node: later
// losses, cordoned nodes, and a rollout.
type sequenceOptions struct {
	then     []string // each a comma-separated list of nodes that are lost at the same time
	cordoned []string
	surging  string // TYPE/NAME of a Deployment with a rollout; "" for no rollout
}

func (o *sequenceOptions) addTo(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&o.then, "then", nil, "with --node: these nodes, separated by commas, are lost after that; several --then are lost one after the other")
	cmd.Flags().StringSliceVar(&o.cordoned, "cordon", nil, "with --node: these nodes take no pods")
	cmd.Flags().StringVar(&o.surging, "surge", "", "with --node: a rollout of this Deployment has started its additional pods, such as deployment/web")
}

// validate returns an error if --then, --cordon or --surge is set without --node. hasNodes is true
// if --node is set.
func (o *sequenceOptions) validate(hasNodes bool) error {
	if !hasNodes && (len(o.then) > 0 || len(o.cordoned) > 0 || o.surging != "") {
		return errors.New("--then, --cordon and --surge need --node: write the nodes that are lost first")
	}
	return nil
}

// steps returns the names of the nodes of each loss: `first`, and then the nodes in each --then. It
// returns an error if a node would be lost twice.
func (o *sequenceOptions) steps(first []string) ([][]string, error) {
	steps, lost := [][]string{first}, slices.Clone(first)
	for _, text := range o.then {
		names := strings.Split(text, ",")
		slices.Sort(names)
		names = slices.Compact(names)
		for _, name := range names {
			switch {
			case name == "":
				return nil, fmt.Errorf("--then %s: write names of nodes, separated by commas", strconv.Quote(text))
			case slices.Contains(lost, name):
				return nil, fmt.Errorf("--then %s: node %s is lost already", text, name)
			}
		}
		steps, lost = append(steps, names), append(lost, names...)
	}
	return steps, nil
}

// sequence returns the effect of losing the nodes in --node, and then the effect of each later loss
// in --then. With --surge, the effect of the rollout comes first.
func (o *lossOptions) sequence(ctx context.Context, c client.Client, r *view.Room) ([]view.PoolLoss, error) {
	steps, err := o.steps(o.nodes)
	if err != nil {
		return nil, err
	}
	if err := checkNodes(r, slices.Concat(append(slices.Clone(steps), o.cordoned)...)); err != nil {
		return nil, err
	}
	sequence := &view.Sequence{Cordoned: o.cordoned, Surging: o.surging, Steps: steps}
	if o.surging != "" {
		if sequence.Surge, err = o.surge(ctx, c); err != nil {
			return nil, err
		}
	}
	lost := slices.Concat(steps...)
	asked := slices.DeleteFunc(slices.Clone(r.Pods), func(p *corev1.Pod) bool { return !slices.Contains(lost, p.Spec.NodeName) })
	volumes, err := readVolumes(ctx, c, slices.Concat(asked, sequence.Surge))
	if err != nil {
		return nil, err
	}
	r.SetNeeds(volumes, nil)
	return r.InSequence(sequence), nil
}

// surge returns the additional pods that a rollout of the Deployment in --surge starts before it
// deletes old pods.
func (o *lossOptions) surge(ctx context.Context, c client.Client) ([]*corev1.Pod, error) {
	namespace, err := o.Kubeconfig.Namespace(false)
	if err != nil {
		return nil, err
	}
	kind, name, err := likeKind("--surge", o.surging)
	if err != nil {
		return nil, err
	}
	if kind.Kind != "Deployment" {
		return nil, fmt.Errorf("--surge %s: write deployment/NAME: other workloads start no additional pods on other nodes", o.surging)
	}
	d := &appsv1.Deployment{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, d); apierrors.IsNotFound(err) {
		return nil, cmdutil.NotFound("Deployment", namespace, name)
	} else if err != nil {
		return nil, err
	}
	example, lacks, err := PodLike(ctx, c, namespace, o.surging)
	if err != nil {
		return nil, err
	}
	if lacks != "" {
		o.Console.Note(lacks)
	}
	example.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: name, UID: d.UID, Controller: new(true)}}
	added := make([]*corev1.Pod, surgeOf(d))
	for i := range added {
		added[i] = example.DeepCopy()
		added[i].Name = fmt.Sprintf("%s-surge-%d", name, i+1)
	}
	return added, nil
}

// surgeOf returns the number of additional pods that a rollout of the Deployment may start before
// it deletes old pods.
func surgeOf(d *appsv1.Deployment) int {
	replicas := 1
	if d.Spec.Replicas != nil {
		replicas = int(*d.Spec.Replicas)
	}
	if d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
		return 0
	}
	surge := intstr.FromString("25%")
	if rolling := d.Spec.Strategy.RollingUpdate; rolling != nil && rolling.MaxSurge != nil {
		surge = *rolling.MaxSurge
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(&surge, replicas, true)
	if err != nil || replicas == 0 {
		return 0
	}
	return n
}
