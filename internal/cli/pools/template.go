// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package pools

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
	"tidekeeper.dev/tidekeeper/internal/nodepool/sample"
)

// templateOptions holds the flags and arguments of pools node-template.
type templateOptions struct {
	*cmdutil.Env
	nodes []string
	files genericclioptions.FileNameFlags
}

// templatePatch is a merge patch that sets spec.nodeTemplate of a NodePool.
type templatePatch struct {
	Spec struct {
		NodeTemplate *tidekeeperv1.NodeTemplate `json:"nodeTemplate"`
	} `json:"spec"`
}

func newTemplateCommand(e *cmdutil.Env) *cobra.Command {
	o := &templateOptions{Env: e, files: genericclioptions.FileNameFlags{Usage: "a file with sample objects, or - for stdin", Filenames: &[]string{}}}
	cmd := &cobra.Command{
		Use:   "node-template (NODE... | -f FILE)",
		Short: "Describe a pool's future nodes by samples, for spec.nodeTemplate",
		Long: `node-template prints a patch of a NodePool with a spec.nodeTemplate like the given samples.
With it, fit, pending and loss answer for nodes that are not there yet.

Samples are nodes, or objects in a file: Nodes, Karpenter's NodeClaims with their NodePool, or
a MachineDeployment, MachineSet or MachinePool of Cluster API with the capacity annotations
of the cluster autoscaler. Of several samples, the template has the smallest amounts, the
common labels and all taints. Settings of NodePools and passing taints are left out.`,
		Example: `  kubectl tide pools node-template gpu-1 > patch.yaml
  kubectl patch nodepool gpu --type=merge --patch-file=patch.yaml
  kubectl get machinedeployment -n capi workers -o yaml | kubectl tide pools node-template -f -
  kubectl get nodepools.karpenter.sh/default nodeclaims -o yaml | kubectl tide pools node-template -f -`,
		ValidArgsFunction: e.Kubeconfig.CompleteNames(func() client.ObjectList { return &corev1.NodeList{} }),
		RunE:              cmdutil.RunE(o),
	}
	o.files.AddFlags(cmd.Flags())
	return cmd
}

// Complete implements [cmdutil.Options].
func (o *templateOptions) Complete(_ *cobra.Command, args []string) error {
	o.nodes = args
	return nil
}

// Validate implements [cmdutil.Options].
func (o *templateOptions) Validate() error {
	if (len(o.nodes) > 0) == (len(*o.files.Filenames) > 0) {
		return errors.New("write either names of nodes or -f FILE")
	}
	return nil
}

// Run implements [cmdutil.Options].
func (o *templateOptions) Run(ctx context.Context) error {
	samples, err := o.samples(ctx)
	if err != nil {
		return err
	}
	var patch templatePatch
	if patch.Spec.NodeTemplate, err = sample.Template(samples); err != nil {
		return err
	}
	text, err := yaml.Marshal(&patch)
	if err != nil {
		return err
	}
	_, err = o.Console.Out.Write(text)
	return err
}

// samples reads the sample objects from which the template is derived: the nodes named in the
// arguments, or the objects in the files of -f.
func (o *templateOptions) samples(ctx context.Context) (samples []*unstructured.Unstructured, err error) {
	if len(o.nodes) == 0 {
		err := cmdutil.ReadManifests(o.In, o.files.ToOptions(), func(object *unstructured.Unstructured, _ string) { samples = append(samples, object) })
		return samples, err
	}
	c, err := o.Kubeconfig.Client()
	if err != nil {
		return nil, err
	}
	for _, name := range o.nodes {
		node := &unstructured.Unstructured{}
		node.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Node"))
		if err := c.Get(ctx, client.ObjectKey{Name: name}, node); err != nil {
			return nil, cmdutil.AboutKind(err, "Node", "", name)
		}
		samples = append(samples, node)
	}
	return samples, nil
}
