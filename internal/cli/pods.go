// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const podKind = "Pod"

func (a *app) podsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "pods",
		Aliases: []string{"pod", "po"},
		Short:   "Pods: what happens to them, how they came up, which were slow",
		Long: `pods shows how pods come up. It works on any cluster: neither Tidekeeper's kinds
nor its manager are needed.`,
		Example: `  kubectl tide pods watch -l app=web          # each transition as it happens
  kubectl tide pods timeline web-5d8f-x2v9p   # where the time went
  kubectl tide pods slow -A --top 20          # the slowest starters`,
		Args: noArguments,
		RunE: help,
	}
	cmd.AddCommand(a.watchPodsCommand(), a.timelineCommand(), a.slowCommand())
	return cmd
}

// podFlags are the flags that choose pods.
type podFlags struct {
	all      bool
	selector string
}

func (f *podFlags) addTo(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&f.all, "all-namespaces", "A", false, "those of all namespaces")
	cmd.Flags().StringVarP(&f.selector, "selector", "l", "", "only those with these labels, such as app=web")
}

// podChoice is which pods a command is about.
type podChoice struct {
	names     []string // none: all that the selector matches
	namespace string   // "": all
	selector  labels.Selector
}

// choosePods reads the flags and the names.
func (a *app) choosePods(flags podFlags, args []string) (podChoice, error) {
	c := podChoice{}
	for _, arg := range args {
		kind, name, slash := strings.Cut(arg, "/")
		switch {
		case !slash:
			name = arg
		case kind != "pod" && kind != "pods" && kind != "po":
			return c, fmt.Errorf("%q is no pod: write the name of one, or choose by label with -l", arg)
		}
		c.names = append(c.names, name)
	}
	switch {
	case len(c.names) > 0 && flags.all:
		return c, fmt.Errorf("a pod's name is not enough with -A: write -n and its namespace")
	case len(c.names) > 0 && flags.selector != "":
		return c, fmt.Errorf("write either the names of pods or -l, not both")
	}
	var err error
	if c.selector, err = labels.Parse(flags.selector); err != nil {
		return c, fmt.Errorf("--selector: %w", err)
	}
	c.namespace, err = a.namespace(flags.all)
	return c, err
}

// narrowed tells whether the choice leaves pods of its namespace out.
func (c podChoice) narrowed() bool { return len(c.names) > 0 || !c.selector.Empty() }

// listPods returns the chosen pods. One that is named has to be there.
func (a *app) listPods(ctx context.Context, c client.Client, choice podChoice) ([]corev1.Pod, error) {
	var pods []corev1.Pod
	for _, name := range choice.names {
		pod := corev1.Pod{}
		if err := c.Get(ctx, client.ObjectKey{Namespace: choice.namespace, Name: name}, &pod); err != nil {
			return nil, aboutKind(err, podKind, choice.namespace, name)
		}
		pods = append(pods, pod)
	}
	if len(choice.names) > 0 {
		return pods, nil
	}
	list := &corev1.PodList{}
	if err := c.List(ctx, list, client.InNamespace(choice.namespace), client.MatchingLabelsSelector{Selector: choice.selector}); err != nil {
		return nil, err
	}
	if len(list.Items) == 0 {
		return nil, namespaceExists(ctx, c, choice.namespace)
	}
	return list.Items, nil
}

// namespaceExists returns an error if there is no such namespace: the API server
// answers a list in one with nothing. Who may not ask is not told.
func namespaceExists(ctx context.Context, c client.Client, name string) error {
	if name == "" {
		return nil
	}
	err := c.Get(ctx, client.ObjectKey{Name: name}, &corev1.Namespace{})
	if apierrors.IsForbidden(err) {
		return nil
	}
	return aboutKind(err, "Namespace", "", name)
}
