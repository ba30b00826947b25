// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package freezes

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
	"tidekeeper.dev/tidekeeper/internal/term"
	"tidekeeper.dev/tidekeeper/internal/view"
)

// generateName is the name prefix of Freezes whose name the API server generates.
const generateName = "freeze-"

// freezeOptions holds the flags and arguments of the command freeze.
type freezeOptions struct {
	*cmdutil.Env
	until, from, reason, name string
	dryRun                    cmdutil.DryRun

	// namespaces lists the namespaces in the flag -n. An empty list means all namespaces.
	namespaces []string
	spec       tidekeeperv1.FreezeSpec
}

func newFreezeCommand(e *cmdutil.Env) *cobra.Command {
	o := &freezeOptions{Env: e}
	cmd := &cobra.Command{
		Use:   "freeze --until TIME --reason TEXT",
		Short: "Hold back restarts and NoExecute taints until a time",
		Long: `freeze creates a Freeze: until it ends, no restart is started, whatever its trigger, no node
gets a NoExecute taint from a pool, and no NodeMaintenance drains nodes. With -n, only
restarts in these namespaces are held back; nodes are held back in any case. Restarts in
progress continue.

A Freeze ends by itself; kubectl tide thaw ends it earlier. Restarts whose deadline has
passed by then are missed, and the others start as the budget allows. kubectl get freezes
shows what each Freeze holds back.

TIME is a duration from now, such as 90m, 24h or 7d, or a time with its zone, such as
2026-12-27T08:00:00+01:00.`,
		Example: `  kubectl tide freeze --until 4h --reason "database migration"
  kubectl tide freeze --name christmas --from 2026-12-23T18:00:00+01:00 --until 2026-12-27T08:00:00+01:00 --reason "change freeze"
  kubectl tide freeze -n shop,blog --until 90m --reason "incident 4711"`,
		Args: cmdutil.NoArguments,
		RunE: cmdutil.RunE(o),
	}
	cmd.Flags().StringVar(&o.until, "until", "", "when the freeze ends: a duration from now, or a time with its zone")
	cmd.Flags().StringVar(&o.from, "from", "", "when the freeze begins, written like --until (default now)")
	cmd.Flags().StringVar(&o.reason, "reason", "", "the reason, in one line; restarts and pools that are held back show it")
	cmd.Flags().StringVar(&o.name, "name", "", "name of the Freeze (default generated)")
	o.dryRun.AddTo(cmd)
	return cmd
}

// Complete implements [cmdutil.Options].
func (o *freezeOptions) Complete(cmd *cobra.Command, _ []string) error {
	if f := cmd.Flags().Lookup("namespace"); f != nil && f.Changed {
		o.namespaces = strings.Split(*o.Kubeconfig.Flags.Namespace, ",")
	}
	return nil
}

// Validate implements [cmdutil.Options].
func (o *freezeOptions) Validate() error {
	if err := o.dryRun.Validate(); err != nil {
		return err
	}
	now := o.Now()
	until, err := moment("--until", o.until, now)
	switch {
	case err != nil:
		return err
	case !until.After(now):
		return fmt.Errorf("--until=%s: that is not in the future", o.until)
	case strings.TrimSpace(o.reason) == "" || strings.ContainsAny(o.reason, "\n\r\t"):
		return errors.New("--reason is required, in one line: restarts and pools that are held back show it")
	case len([]rune(o.reason)) > 256:
		return fmt.Errorf("--reason: at most 256 characters, got %d", len([]rune(o.reason)))
	}
	o.spec = tidekeeperv1.FreezeSpec{Until: metav1.Time{Time: until}, Reason: o.reason}
	if o.from != "" {
		from, err := moment("--from", o.from, now)
		switch {
		case err != nil:
			return err
		case !from.Before(until):
			return fmt.Errorf("--from=%s: that is not before --until=%s", o.from, o.until)
		}
		o.spec.From = &metav1.Time{Time: from}
	}
	if o.name != "" {
		if problems := validation.IsDNS1123Subdomain(o.name); len(problems) > 0 {
			return fmt.Errorf("--name=%s: lower-case letters, digits, '-' and '.', beginning and ending with a letter or digit", o.name)
		}
	}
	return o.selectNamespaces()
}

// selectNamespaces sets the namespace selector of the Freeze from the values of -n.
func (o *freezeOptions) selectNamespaces() error {
	if len(o.namespaces) == 0 {
		return nil
	}
	requirement := tidekeeperv1.NamespaceSelectorRequirement{Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpIn}
	for _, namespace := range o.namespaces {
		if problems := validation.IsDNS1123Label(namespace); len(problems) > 0 {
			return fmt.Errorf("-n %s: %q is not the name of a namespace; for several write a,b", strings.Join(o.namespaces, ","), namespace)
		}
		requirement.Values = append(requirement.Values, tidekeeperv1.LabelValue(namespace))
	}
	if most := 64; len(o.namespaces) > most {
		return fmt.Errorf("-n: at most %d namespaces, got %d: create a Freeze with a label selector, or several Freezes", most, len(o.namespaces))
	}
	o.spec.NamespaceSelector = &tidekeeperv1.NamespaceSelector{MatchExpressions: []tidekeeperv1.NamespaceSelectorRequirement{requirement}}
	return nil
}

// moment parses the value of a flag: a duration from now, or a time with a time zone. It truncates
// the resulting time to whole seconds.
func moment(flag, value string, now time.Time) (time.Time, error) {
	if value == "" {
		return time.Time{}, fmt.Errorf("%s is required: write a duration such as 4h, or a time such as 2026-12-27T08:00:00+01:00", flag)
	}
	if at, err := time.Parse(time.RFC3339, value); err == nil {
		return at.Truncate(time.Second).UTC(), nil
	}
	length := cmdutil.Duration{}
	if err := length.Set(value); err != nil {
		return time.Time{}, fmt.Errorf("%s=%s: write a duration such as 4h or 7d, or a time such as 2026-12-27T08:00:00+01:00", flag, value)
	}
	return now.Add(length.Duration).Truncate(time.Second).UTC(), nil
}

// Run implements [cmdutil.Options].
func (o *freezeOptions) Run(ctx context.Context) error {
	c, err := o.Kubeconfig.Client()
	if err != nil {
		return err
	}
	f, err := o.create(ctx, c)
	if err != nil {
		return err
	}
	fmt.Fprintln(o.Console.Out, o.done(f))
	m, err := cmdutil.ManagerIfAllowed(ctx, o.Env, c)
	if err == nil {
		o.NoteManager(m, view.Unobserved{}, cmdutil.ThenFreeze)
	}
	return err
}

// create creates the Freeze. With --dry-run=server, the API server only validates the Freeze.
func (o *freezeOptions) create(ctx context.Context, c client.Client) (*tidekeeperv1.Freeze, error) {
	for _, namespace := range o.namespaces {
		if err := cmdutil.NamespaceExists(ctx, c, namespace); err != nil {
			return nil, err
		}
	}
	f := &tidekeeperv1.Freeze{ObjectMeta: metav1.ObjectMeta{Name: o.name}, Spec: o.spec}
	if o.name == "" {
		f.GenerateName = generateName
	}
	options := []client.CreateOption{client.FieldOwner(cmdutil.FieldManager)}
	if o.dryRun == cmdutil.DryRunServer {
		options = append(options, client.DryRunAll)
	}
	if err := c.Create(ctx, f, options...); err != nil {
		return nil, cmdutil.AboutKind(err, freezeKind.Name, "", o.name)
	}
	return f, nil
}

// done returns the message to print after the Freeze f was created.
func (o *freezeOptions) done(f *tidekeeperv1.Freeze) string {
	now := o.Now()
	where := "any namespace"
	if len(o.namespaces) > 0 {
		where = strings.Join(o.namespaces, ", ")
	}
	from := ""
	if f.Spec.From != nil {
		from = "from " + term.ComingInZone(f.Spec.From.Time, now, o.Local) + " "
	}
	return fmt.Sprintf("%s created: no restart is started in %s %suntil %s%s", displayName(f.Name), where, from, term.ComingInZone(f.Spec.Until.Time, now, o.Local), o.dryRun.Suffix())
}
