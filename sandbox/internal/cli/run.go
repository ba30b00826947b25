// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"tidekeeper.dev/tidekeeper/sandbox/internal/incluster"
	"tidekeeper.dev/tidekeeper/sandbox/internal/streaming"
)

// runFlags holds the values of the flags of `sandbox run`.
type runFlags struct {
	serviceAccount, from, certDir string
	webhooks                      []string
	webhookPort                   int32
	kubelets                      bool
}

func newRun(s *target) *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run [flags] -- PROGRAM [ARGUMENTS...]",
		Short: "Run a program as if it were in a pod of the sandbox",
		Long: `Run a program of this machine as if it were in a pod of the sandbox.

It finds the files of a ServiceAccount where every container has them, and has the
rights of that account and no others. While it runs it has a Pod, which is ready, in
the API server. The webhooks and the APIServices of Services that select the Pod reach
it on this machine.

Signals and the exit code are passed through. It needs root, or a kernel that permits
user namespaces.`,
		Example: `  # With an account that has no rights.
  sandbox run -- ./operator

  # With the account, the environment and the arguments of a Deployment.
  sandbox run --from deployment/shop/operator -- ./operator
  sandbox run --from config/manager.yaml -- ./operator --zap-log-level=debug

  # With an account, serving the webhooks of a Service.
  sandbox run --service-account shop/operator --webhooks shop/webhook -- ./operator`,
		Args: atLeastOne("a program, after --"),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd.Context(), s, args) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	// Do not parse flags after the name of the program, because they are the program's own.
	flags.SetInterspersed(false)
	flags.StringVar(&f.serviceAccount, "service-account", "", "NAMESPACE/NAME of the account whose rights it has (default a new account without rights, in the namespace default)")
	flags.StringVar(&f.from, "from", "", "deployment/NAMESPACE/NAME, or the file of a manifest with a Deployment: run it with the account, the environment and, unless it is given some, the arguments of its first container")
	flags.StringSliceVar(&f.webhooks, "webhooks", nil, "NAMESPACE/NAME of additional Services whose webhooks it serves; Services that select its Pod need no mention")
	flags.Int32Var(&f.webhookPort, "webhook-port", 0, "the port at which it serves webhooks (default the target port of the Service, or 9443 if there is no such Service)")
	flags.StringVar(&f.certDir, "webhook-cert-dir", incluster.DefaultCertDir(), "the directory in which the program expects tls.crt and tls.key")
	flags.BoolVar(&f.kubelets, "kubelets", false, "give it an HTTPS_PROXY to the kubelets, for metrics of nodes, if its account may read them")
	return cmd
}

// run runs the program as if in a pod. It is executed twice: first in the process that the user
// starts, then in a child process in new Linux namespaces.
func (f runFlags) run(ctx context.Context, s *target, program []string) error {
	o, err := f.options()
	if err != nil {
		return err
	}
	o.Program = program
	if _, err := incluster.LookPath(program[0]); err != nil {
		return err
	}
	dir, _, err := s.running(ctx)
	if err != nil {
		return err
	}
	starter, inside, err := incluster.Inside()
	if err != nil {
		return err
	}
	var code int
	if inside {
		if o.Config, err = dir.RESTConfig(); err != nil {
			return err
		}
		o.Config.QPS = -1
		if f.kubelets {
			proxy, err := streaming.NewProxy(ctx, dir.KubeletsSocket())
			if err != nil {
				return err
			}
			defer proxy.Close()
			o.Environment = []string{"HTTPS_PROXY=" + proxy.URL.String(), "https_proxy=" + proxy.URL.String()}
		}
		code, err = incluster.Run(ctx, o, starter)
	} else {
		code, err = incluster.Enter()
	}
	if err != nil {
		return err
	}
	if code != 0 {
		return exitError(code)
	}
	return nil
}

// options validates the flags and converts them to options.
func (f runFlags) options() (incluster.Options, error) {
	o := incluster.Options{From: f.from, WebhookPort: f.webhookPort}
	var err error
	if f.serviceAccount != "" && f.from != "" {
		return o, errors.New("--service-account and --from: the account is that of the Deployment, so leave one of them out")
	}
	if f.serviceAccount != "" {
		if o.ServiceAccount, err = namespacedName("--service-account", f.serviceAccount); err != nil {
			return o, err
		}
	}
	for _, text := range f.webhooks {
		service, err := namespacedName("--webhooks", text)
		if err != nil {
			return o, err
		}
		o.Services = append(o.Services, service)
	}
	if f.webhookPort < 0 || f.webhookPort > 65535 {
		return o, fmt.Errorf("--webhook-port %d: want a port from 1 to 65535", f.webhookPort)
	}
	o.CertDir, err = filepath.Abs(f.certDir)
	return o, err
}

func namespacedName(flag, text string) (types.NamespacedName, error) {
	namespace, name, _ := strings.Cut(text, "/")
	if namespace == "" || name == "" || strings.Contains(name, "/") {
		return types.NamespacedName{}, fmt.Errorf("%s %q: want NAMESPACE/NAME", flag, text)
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, nil
}
