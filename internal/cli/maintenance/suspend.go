// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
	"tidekeeper.dev/tidekeeper/internal/term"
	"tidekeeper.dev/tidekeeper/internal/view"
)

// suspendOptions holds the flags and arguments of maintenance suspend and maintenance resume.
type suspendOptions struct {
	targets
	suspend bool
}

func newSuspendCommand(e *cmdutil.Env) *cobra.Command {
	o := &suspendOptions{targets: targets{Env: e}, suspend: true}
	cmd := &cobra.Command{
		Use:   "suspend NAME... | -l SELECTOR | --all",
		Short: "Begin no drain, and move no pod, until resumed",
		Long: `suspend sets spec.suspend of maintenances: no drain begins, and no pod is moved. A node
that is being drained stays cordoned, with the pods that it has. Drained nodes stay so until
their maintenance is done, and are then put back into use.`,
		Example: `  kubectl tide maintenance suspend reboot
  kubectl tide maintenance suspend --all`,
		RunE: cmdutil.RunE(o),
	}
	o.addTo(cmd)
	return cmd
}

func newResumeCommand(e *cmdutil.Env) *cobra.Command {
	o := &suspendOptions{targets: targets{Env: e}}
	cmd := &cobra.Command{
		Use:   "resume NAME... | -l SELECTOR | --all",
		Short: "Resume suspended maintenances",
		Long: `resume unsets spec.suspend of maintenances: drains go on where they stopped, and further
drains begin as windows, freezes and limits allow.`,
		Example: `  kubectl tide maintenance resume reboot`,
		RunE:    cmdutil.RunE(o),
	}
	o.addTo(cmd)
	return cmd
}

// Run implements [cmdutil.Options].
func (o *suspendOptions) Run(ctx context.Context) error {
	c, err := o.Kubeconfig.Client()
	if err != nil {
		return err
	}
	items, err := o.read(ctx, c)
	if err != nil {
		return err
	}
	for i := range items {
		done, err := o.set(ctx, c, &items[i])
		if err != nil {
			return err
		}
		fmt.Fprintf(o.Console.Out, "%s %s%s\n", displayName(&items[i]), done, o.DryRun.Suffix())
	}
	m, err := cmdutil.ManagerIfAllowed(ctx, o.Env, c)
	if err != nil || len(items) == 0 {
		return err
	}
	o.NoteManager(m, view.Unobserved{}, cmdutil.ThenRequest)
	o.NoteController(m, ControllerName, thenNotDrained)
	return nil
}

// set suspends or resumes a NodeMaintenance, and returns the outcome to print.
func (o *suspendOptions) set(ctx context.Context, c client.Client, m *tidekeeperv1.NodeMaintenance) (string, error) {
	if m.Spec.Suspend == o.suspend {
		if o.suspend {
			return "is already suspended", nil
		}
		return "is not suspended", nil
	}
	before := m.DeepCopy()
	// A patch, unlike an update, keeps fields that newer versions of the API may have added.
	patch := fmt.Sprintf(`{"metadata":{"uid":%q},"spec":{"suspend":%t}}`, m.UID, o.suspend)
	if err := c.Patch(ctx, m, client.RawPatch(types.MergePatchType, []byte(patch)), o.DryRun.PatchOptions()...); err != nil {
		return "", cmdutil.AboutKind(err, maintenanceKind.Name, "", m.Name)
	}
	if o.suspend {
		return "suspended" + underway(before), nil
	}
	return "resumed", nil
}

// underway describes the effect of suspending a NodeMaintenance on the nodes in maintenance. It
// returns "" if no node is in maintenance.
func underway(m *tidekeeperv1.NodeMaintenance) string {
	draining, drained := 0, 0
	for _, n := range m.Status.Nodes {
		switch n.Phase {
		case tidekeeperv1.NodeDraining:
			draining++
		case tidekeeperv1.NodeDrained, tidekeeperv1.NodeReturning:
			drained++
		}
	}
	var parts []string
	if draining > 0 {
		parts = append(parts, "the drain of "+term.Plural(draining, "node")+" stops where it is")
	}
	if drained > 0 {
		parts = append(parts, term.Plural(drained, "node")+" will be put back into use once the maintenance is done")
	}
	if len(parts) == 0 {
		return ""
	}
	return "; " + strings.Join(parts, ", ")
}
