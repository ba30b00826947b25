// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"tidekeeper.dev/tidekeeper/internal/migrate"
	"tidekeeper.dev/tidekeeper/internal/schedule"
)

func (a *app) migrateCommand() *cobra.Command {
	var from origins
	var options migrate.Options
	var output string
	cmd := &cobra.Command{
		Use:   "migrate (-f FILE|DIRECTORY|- ... | --from-cluster)",
		Short: "Turn NodePools and Erus of the original operators into ours",
		Long: `migrate reads NodePools of nodes.lailin.xyz/v1, Erus of mtsre.meitu.com/v1 and
Deployments with the annotation mtsre.meitu.com/eru, and prints NodePools and
ScheduledRestarts of tidekeeper.dev/v1 for kubectl apply -f -. It changes nothing.

What cannot be carried over is one line on stderr. So is what has to be done by a
command, as it is about a part of an object that is not ours, such as an
annotation on a Deployment; -o commands prints just these commands.

docs/migrate.md says in which order to go, so that nothing is restarted twice.

Exit codes: 0 all is in what is printed, 2 stderr names something that is not,
1 the input cannot be read and nothing is printed, 4 the cluster cannot be
reached, 5 not allowed to read some of it; what can be read is printed.`,
		Example: `  kubectl tide migrate -f old/ -R > tidekeeper.yaml
  kubectl tide migrate --from-cluster --suspended | kubectl apply -f -
  kubectl tide migrate --from-cluster --time-zone Asia/Shanghai | kubectl apply -f -
  kubectl tide migrate --from-cluster --time-zone Asia/Shanghai -o commands > hand-over.sh`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !slices.Contains(migrateOutputs, output) {
				return fmt.Errorf("-o %s: write one of %s", output, strings.Join(migrateOutputs, ", "))
			}
			if _, err := schedule.Parse("@daily", options.TimeZone); err != nil {
				return fmt.Errorf("--time-zone: %w", err)
			}
			objects, complete, err := a.originals(cmd.Context(), from)
			var partial *partialError
			if err != nil && !errors.As(err, &partial) {
				return err
			}
			options.Complete = complete
			result := migrate.Convert(objects, options)
			byHand, printErr := a.printMigrated(result, output)
			switch {
			case printErr != nil:
				return printErr
			case partial != nil:
				return partial
			case byHand > 0:
				return &failure{exitByHand, nil}
			default:
				return nil
			}
		},
	}
	cmd.Flags().StringSliceVarP(&from.files, "filename", "f", nil, "files and directories to read; - is the standard input")
	cmd.Flags().BoolVarP(&from.recursive, "recursive", "R", false, "read the directories below those of -f too")
	cmd.Flags().BoolVar(&from.cluster, "from-cluster", false, "read them from the cluster; with -n, Erus and Deployments of that namespace only")
	cmd.Flags().StringVar(&options.TimeZone, "time-zone", "", "IANA name of the zone that the original's controller ran in (default UTC, and stderr says so)")
	cmd.Flags().BoolVar(&options.Suspended, "suspended", false, "leave all schedules suspended, for the time while the original's controller still runs")
	cmd.Flags().StringVarP(&output, "output", "o", "yaml", strings.Join(migrateOutputs, "|"))
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(migrateOutputs, cobra.ShellCompDirectiveNoFileComp))
	cmd.MarkFlagsMutuallyExclusive("filename", "from-cluster")
	return cmd
}

var migrateOutputs = []string{"yaml", "json", "commands"}

// origins is where to read from.
type origins struct {
	files     []string
	recursive bool
	cluster   bool
}

// originals reads what is to be converted, and tells whether that is all there is.
func (a *app) originals(ctx context.Context, from origins) (objects []migrate.Object, complete bool, err error) {
	switch {
	case from.cluster:
		return a.originalsOfCluster(ctx)
	case len(from.files) == 0:
		return nil, false, errors.New("nothing to read: give -f FILE, -f DIRECTORY, -f - or --from-cluster")
	default:
		objects, err = a.originalsOfFiles(from)
		return objects, false, err
	}
}

func (a *app) originalsOfFiles(from origins) ([]migrate.Object, error) {
	var objects []migrate.Object
	err := a.readManifests(resource.FilenameOptions{Filenames: from.files, Recursive: from.recursive}, func(o *unstructured.Unstructured, source string) {
		objects = append(objects, migrate.Object{Unstructured: o, Source: source})
	})
	if err != nil {
		return nil, &failure{exitError, fmt.Errorf("nothing is converted: %w", err)}
	}
	return objects, nil
}

// partialError says that some of it could not be read.
type partialError struct{ reasons error }

func (p *partialError) Error() string {
	return "not all could be read: " + strings.ReplaceAll(p.reasons.Error(), "\n", "; ")
}
func (p *partialError) Unwrap() error { return p.reasons }

// originalsOfCluster reads from the cluster what may be read there.
func (a *app) originalsOfCluster(ctx context.Context) (objects []migrate.Object, complete bool, err error) {
	c, err := a.client()
	if err != nil {
		return nil, false, err
	}
	var refused error
	complete = true
	for _, kind := range []schema.GroupVersionKind{migrate.NodePoolKind, migrate.EruKind, migrate.DeploymentKind} {
		// Of Deployments only the metadata is needed.
		items, err := listOriginals(ctx, c, kind, *a.flags.Namespace, kind == migrate.DeploymentKind)
		switch {
		case err == nil:
			objects = append(objects, items...)
		case apierrors.IsNotFound(err):
			fmt.Fprintf(a.errOut, "note: the cluster does not know the kind %s of %s: there is none to convert\n", kind.Kind, kind.GroupVersion())
		case apierrors.IsForbidden(err):
			complete = complete && kind != migrate.DeploymentKind
			refused = errors.Join(refused, err)
		default:
			return nil, false, err
		}
	}
	if refused != nil {
		return objects, complete, &partialError{refused}
	}
	return objects, complete, nil
}

func listOriginals(ctx context.Context, c client.Client, kind schema.GroupVersionKind, namespace string, metadata bool) ([]migrate.Object, error) {
	var in []client.ListOption
	if kind != migrate.NodePoolKind {
		in = append(in, client.InNamespace(namespace))
	}
	kind.Kind += "List"
	if metadata {
		found := &metav1.PartialObjectMetadataList{}
		found.SetGroupVersionKind(kind)
		if err := c.List(ctx, found, in...); err != nil {
			return nil, err
		}
		objects := make([]migrate.Object, len(found.Items))
		for i := range found.Items {
			fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&found.Items[i])
			if err != nil {
				return nil, err
			}
			objects[i].Unstructured = &unstructured.Unstructured{Object: fields}
			objects[i].SetGroupVersionKind(migrate.DeploymentKind)
		}
		return objects, nil
	}
	found := &unstructured.UnstructuredList{}
	found.SetGroupVersionKind(kind)
	if err := c.List(ctx, found, in...); err != nil {
		return nil, err
	}
	objects := make([]migrate.Object, len(found.Items))
	for i := range found.Items {
		objects[i].Unstructured = &found.Items[i]
	}
	return objects, nil
}

// printMigrated prints the result, and returns how much of it is left to a
// person.
func (a *app) printMigrated(result migrate.Result, output string) (byHand int, err error) {
	for _, r := range result.Remarks {
		if r.Weight == migrate.LeftOut {
			byHand++
		}
		fmt.Fprintln(a.errOut, r)
	}
	if len(result.Pools)+len(result.Restarts)+len(result.Commands)+byHand == 0 {
		fmt.Fprintln(a.errOut, "note: there is nothing to convert")
	}
	if output == "commands" {
		for _, c := range result.Commands {
			fmt.Fprintf(a.out, "# %s: %s.\n%s\n", c.Object, c.Why, c.Line)
		}
		return byHand, nil
	}
	for _, c := range result.Commands {
		byHand++
		fmt.Fprintf(a.errOut, "to do: %s: %s: %s\n", c.Object, c.Why, c.Line)
	}
	items := make([]any, 0, len(result.Pools)+len(result.Restarts))
	for _, pool := range result.Pools {
		items = append(items, pool)
	}
	for _, restart := range result.Restarts {
		items = append(items, restart)
	}
	if output == "json" {
		text, err := json.MarshalIndent(map[string]any{"apiVersion": "v1", "kind": "List", "items": items}, "", "    ")
		if err == nil {
			_, err = fmt.Fprintln(a.out, string(text))
		}
		return byHand, err
	}
	for i, item := range items {
		text, err := yaml.Marshal(item)
		if err != nil {
			return byHand, err
		}
		if i > 0 {
			fmt.Fprintln(a.out, "---")
		}
		if _, err := a.out.Write(text); err != nil {
			return byHand, err
		}
	}
	return byHand, nil
}
