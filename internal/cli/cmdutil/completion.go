// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cmdutil

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// completionTimeout limits the duration of a shell completion.
const completionTimeout = 3 * time.Second

// CompleteOne returns a completion function for a command with a single argument, the name of an
// object. list returns an empty list of the object's kind.
func (k *Kubeconfig) CompleteOne(list func() client.ObjectList) cobra.CompletionFunc {
	complete := k.CompleteNames(list)
	return func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return complete(cmd, args, toComplete)
	}
}

// CompleteNames returns a completion function for any number of object names, without duplicates.
// list returns an empty list of the objects' kind. The function ignores errors, because an error
// message would disturb the user who is still typing.
func (k *Kubeconfig) CompleteNames(list func() client.ObjectList) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		names, _ := k.names(cmd.Context(), list())
		return slices.DeleteFunc(names, func(name string) bool {
			name, _, _ = strings.Cut(name, "\t")
			return slices.Contains(args, name)
		}), cobra.ShellCompDirectiveNoFileComp
	}
}

// drainedFor is the text between the name of a drained node and the name of its NodeMaintenance in a
// completion.
const drainedFor = "\tdrained for "

// CompleteDrainedNodes returns a completion function for any number of nodes that are drained for a
// NodeMaintenance.
func (k *Kubeconfig) CompleteDrainedNodes() cobra.CompletionFunc {
	complete := k.CompleteNames(func() client.ObjectList { return &corev1.NodeList{} })
	return func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		names, directive := complete(cmd, args, toComplete)
		return slices.DeleteFunc(names, func(name string) bool { return !strings.Contains(name, drainedFor) }), directive
	}
}

// CompleteContext completes the kubeconfig context in the flag --context.
func (k *Kubeconfig) CompleteContext(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	names, _ := k.contextNames()
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completeContexts completes the last name of a comma-separated list of contexts, with contexts
// that the list does not contain yet.
func (k *Kubeconfig) completeContexts(_ *cobra.Command, _ []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	names, _ := k.contextNames()
	return nextContexts(names, toComplete), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// names lists the objects of the kind of the given empty list, and returns their names as
// completions. A completion may end with a tab character and a description.
func (k *Kubeconfig) names(ctx context.Context, objects client.ObjectList) ([]string, error) {
	c, err := k.Client()
	if err != nil {
		return nil, err
	}
	namespace, err := k.Namespace(false)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	defer cancel()
	var options []client.ListOption
	switch objects.(type) {
	case *tidekeeperv1.ScheduledRestartList, *corev1.PodList:
		options = append(options, client.InNamespace(namespace))
	}
	if err := c.List(ctx, objects, options...); err != nil {
		return nil, err
	}
	return namesOf(objects), nil
}

func namesOf(objects client.ObjectList) []string {
	names := []string{}
	switch objects := objects.(type) {
	case *tidekeeperv1.ScheduledRestartList:
		for i := range objects.Items {
			r := &objects.Items[i]
			names = append(names, fmt.Sprintf("%s\t%s of %s %s", r.Name, triggersOf(&r.Spec), r.Spec.TargetRef.Kind, r.Spec.TargetRef.Name))
		}
	case *tidekeeperv1.NodePoolList:
		for i := range objects.Items {
			names = append(names, objects.Items[i].Name)
		}
	case *tidekeeperv1.FreezeList:
		for i := range objects.Items {
			names = append(names, objects.Items[i].Name+"\t"+objects.Items[i].Spec.Reason)
		}
	case *tidekeeperv1.NodeMaintenanceList:
		for i := range objects.Items {
			names = append(names, objects.Items[i].Name)
		}
	case *corev1.NodeList:
		for i := range objects.Items {
			name := objects.Items[i].Name
			if of, drained := objects.Items[i].Annotations[tidekeeperv1.DrainedForMaintenanceAnnotation]; drained {
				name += drainedFor + of
			}
			names = append(names, name)
		}
	case *corev1.PodList:
		for i := range objects.Items {
			names = append(names, objects.Items[i].Name+"\t"+string(objects.Items[i].Status.Phase))
		}
	case *corev1.NamespaceList:
		for i := range objects.Items {
			names = append(names, objects.Items[i].Name)
		}
	}
	return names
}

// triggersOf briefly describes a ScheduledRestart's triggers for a completion.
func triggersOf(spec *tidekeeperv1.ScheduledRestartSpec) string {
	switch {
	case spec.GetSchedule() != "":
		return string(spec.GetSchedule())
	case spec.MaxPodAgeSeconds > 0:
		return "by age"
	default:
		return "on change"
	}
}
