// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"tidekeeper.dev/tidekeeper/sandbox/internal/cluster"
)

func newKubeconfig(s *target) *cobra.Command {
	var user, output string
	var groups []string
	cmd := &cobra.Command{
		Use:   "kubeconfig",
		Short: "Print a kubeconfig for a user",
		Long: `Print a kubeconfig with a new client certificate of a user. The user may do what
RBAC allows; without --user it is the administrator, who may do everything. With
--output it is a file with the mode 0600, which is replaced as a whole.`,
		Example: `  sandbox kubeconfig --output admin.kubeconfig
  sandbox kubeconfig --user alice --group developers --group testers --output alice.kubeconfig`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := s.dir()
			if err != nil {
				return err
			}
			if err := checkUser(user, cmd.Flags().Changed("user"), groups); err != nil {
				return err
			}
			data, err := kubeconfigOf(dir.Access(), user, groups)
			if err != nil {
				return err
			}
			if output != "" {
				return cluster.WriteKubeconfig(output, data)
			}
			_, err = cmd.OutOrStdout().Write(data)
			return err
		},
	}
	cmd.Flags().StringVar(&output, "output", "", "the file to write it to, which only you can read (default standard output)")
	cmd.Flags().StringVar(&user, "user", "", "whose kubeconfig (default "+cluster.Admin+", who may do everything)")
	cmd.Flags().StringArrayVar(&groups, "group", nil, "a group that the user is in; can be given several times")
	return cmd
}

// checkUser rejects an empty --user, and groups without a user. The parameter "given" is true if
// the flag --user is set.
func checkUser(user string, given bool, groups []string) error {
	switch {
	case user != "":
		return nil
	case given:
		return errors.New("--user is empty: name the user, or leave it out for the administrator")
	case len(groups) > 0:
		return errors.New("--group without --user: name the user who is in the group")
	}
	return nil
}

func kubeconfigOf(access cluster.Access, user string, groups []string) ([]byte, error) {
	if user == "" {
		return access.AdminKubeconfig()
	}
	return access.NewKubeconfig(user, groups)
}
