package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/syncgate/syncgate/plugin/keys"
	"github.com/syncgate/syncgate/plugin/receipt"
)

func newKeys() *cobra.Command {
	c := &cobra.Command{
		Use:   "keys",
		Short: "Make keys, publish key sets, show key IDs",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return usage(c, "give one of: new, jwks, show") },
	}
	c.AddCommand(newKeysNew(), newKeysJWKS(), newKeysShow())
	return c
}

func newKeysNew() *cobra.Command {
	var out, alg string
	c := &cobra.Command{
		Use:   "new --out FILE",
		Short: "Make a private key; its key ID is its RFC 7638 thumbprint",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usage(c, "unknown argument %.80q: the file is given with --out, as in --out %.80s", args[0], args[0])
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error {
			private, kid, err := keys.New(alg)
			if err != nil {
				return &usageError{c.CommandPath(), err}
			}
			if err := keys.WritePrivate(out, private); err != nil {
				if errors.Is(err, os.ErrExist) {
					return fmt.Errorf("%s exists: a private key is never overwritten", out)
				}
				return err
			}
			_, err = fmt.Fprintln(c.OutOrStdout(), kid)
			return err
		},
	}
	c.Flags().StringVar(&out, "out", "", "file to write the private key to (PEM, PKCS #8, only its owner can read it)")
	c.Flags().StringVar(&alg, "alg", "EdDSA", "EdDSA, ES256, ES384, PS256 or RS256")
	if err := c.MarkFlagRequired("out"); err != nil {
		panic(err) // the flag is defined above
	}
	return c
}

// publicKeys reads a private key's public half, or a key set.
func publicKeys(path string) ([]receipt.Key, error) {
	s, err := keys.ReadSigner(path, "")
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil, err
	}
	if err == nil {
		return []receipt.Key{s.Key()}, nil
	}
	list, err2 := keys.ReadJWKS(path)
	if err2 != nil {
		return nil, fmt.Errorf("%s is neither a private key (%w) nor a key set (%w)", path, err, err2)
	}
	return list, nil
}

func newKeysJWKS() *cobra.Command {
	return &cobra.Command{
		Use:   "jwks FILE...",
		Short: "Print one key set with the public halves of keys and key sets",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			var all []receipt.Key
			for _, path := range args {
				list, err := publicKeys(path)
				if err != nil {
					return err
				}
				all = append(all, list...)
			}
			data, err := keys.PublicJWKS(all)
			if err != nil {
				return err
			}
			_, err = c.OutOrStdout().Write(data)
			return err
		},
	}
}

func newKeysShow() *cobra.Command {
	var output string
	c := &cobra.Command{
		Use:   "show FILE...",
		Short: "Show key IDs, types and thumbprints",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := checkOutput(c, output, "text", "json"); err != nil {
				return err
			}
			type row struct {
				KeyID      string `json:"kid"`
				Type       string `json:"type"`
				Thumbprint string `json:"thumbprint"`
				File       string `json:"file"`
			}
			rows := []row{}
			for _, path := range args {
				list, err := publicKeys(path)
				if err != nil {
					return err
				}
				for _, k := range list {
					rows = append(rows, row{k.ID, keyType(k), k.Thumbprint, path})
				}
			}
			if output == "json" {
				enc := json.NewEncoder(c.OutOrStdout())
				enc.SetIndent("", "  ")
				return enc.Encode(rows)
			}
			tw := tabwriter.NewWriter(c.OutOrStdout(), 0, 8, 2, ' ', 0)
			fmt.Fprintln(tw, "KEY ID\tTYPE\tTHUMBPRINT\tFILE")
			for _, r := range rows {
				fmt.Fprintf(tw, "%s\t%s\t%s\t%s\n", r.KeyID, r.Type, r.Thumbprint, r.File)
			}
			return tw.Flush()
		},
	}
	c.Flags().StringVarP(&output, "output", "o", "text", "text or json")
	return c
}

func keyType(k receipt.Key) string {
	algs := receipt.AlgorithmsFor(k.Public)
	if len(algs) == 0 {
		return "unknown"
	}
	return algs[0]
}
