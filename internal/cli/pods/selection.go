// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
	"tidekeeper.dev/tidekeeper/internal/kube/pages"
)

// selection holds the arguments and flags that select a command's pods.
type selection struct {
	allNamespaces bool
	labelSelector string

	names     []string // names of pods; empty for all pods that match the selector
	namespace string   // "" for all namespaces
	selector  labels.Selector
}

func (s *selection) addTo(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&s.allNamespaces, "all-namespaces", "A", false, "pods in all namespaces")
	cmd.Flags().StringVarP(&s.labelSelector, "selector", "l", "", "only pods with these labels, such as app=web")
}

// complete parses the arguments and flags.
func (s *selection) complete(e *cmdutil.Env, args []string) (err error) {
	if s.names, err = podKind.Names(args); err != nil {
		return fmt.Errorf("%w, or select by label with -l", err)
	}
	if s.selector, err = labels.Parse(s.labelSelector); err != nil {
		return fmt.Errorf("--selector: %w", err)
	}
	s.namespace, err = e.Kubeconfig.Namespace(s.allNamespaces)
	return err
}

func (s *selection) validate() error {
	switch {
	case len(s.names) > 0 && s.allNamespaces:
		return fmt.Errorf("names cannot be combined with -A: select the namespace with -n")
	case len(s.names) > 0 && s.labelSelector != "":
		return fmt.Errorf("write either the names of pods or -l, not both")
	default:
		return nil
	}
}

// narrowed reports whether the selection may exclude some of the namespace's pods.
func (s *selection) narrowed() bool { return len(s.names) > 0 || !s.selector.Empty() }

// list returns the selected pods. It returns an error if a named pod does not exist.
func (s *selection) list(ctx context.Context, c client.Client) ([]corev1.Pod, error) {
	var pods []corev1.Pod
	for _, name := range s.names {
		pod := corev1.Pod{}
		if err := c.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: name}, &pod); err != nil {
			return nil, cmdutil.AboutKind(err, podKind.Name, s.namespace, name)
		}
		pods = append(pods, pod)
	}
	if len(s.names) > 0 {
		return pods, nil
	}
	list := &corev1.PodList{}
	if err := c.List(ctx, list, client.InNamespace(s.namespace), client.MatchingLabelsSelector{Selector: s.selector}); err != nil {
		return nil, err
	}
	if len(list.Items) == 0 {
		return nil, cmdutil.NamespaceExists(ctx, c, s.namespace)
	}
	return list.Items, nil
}

// each reads the pods that match the selector page by page, and calls read for each pod.
func (s *selection) each(ctx context.Context, c client.Client, read func(*corev1.Pod)) error {
	none := true
	if err := pages.Each(ctx, c, func() *corev1.PodList { return &corev1.PodList{} }, func(page *corev1.PodList) {
		for i := range page.Items {
			none = false
			read(&page.Items[i])
		}
	}, client.InNamespace(s.namespace), client.MatchingLabelsSelector{Selector: s.selector}); err != nil || !none {
		return err
	}
	return cmdutil.NamespaceExists(ctx, c, s.namespace)
}
