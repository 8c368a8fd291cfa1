import { Button, Group, PasswordInput, SegmentedControl, Switch, useMantineColorScheme } from "@mantine/core";
import { useState } from "react";
import { api } from "../../api/client";
import { tellDone, useAction } from "../../app/actions";
import { logOut } from "../../app/logout";
import { usePreferences } from "../../app/preferences";
import { useSession } from "../../app/session";
import { texts } from "../../texts";
import classes from "../ops.module.css";
import { Facts } from "../parts";

const words = texts.operations.you;

/** Who is logged in, how the app looks, and the password. */
export function YouPanel() {
  const session = useSession();
  if (session === null) return null;
  return (
    <div style={{ maxWidth: 520 }}>
      <Facts
        rows={[
          [texts.session.user, session.subject],
          [texts.session.role, texts.operations.roles[session.role]],
          [texts.session.tenant, session.tenant],
        ]}
      />
      <Group mt="md">
        <Button variant="default" onClick={() => void logOut()}>
          {words.logOut}
        </Button>
      </Group>
      <Look />
      <PasswordForm />
    </div>
  );
}

function Look() {
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  const hasLetterKeys = usePreferences((one) => one.hasLetterKeys);
  return (
    <section className={classes.section}>
      <h3>{words.look}</h3>
      <div className={classes.form}>
        <SegmentedControl
          size="xs"
          w="fit-content"
          aria-label={words.theme}
          value={colorScheme}
          onChange={(value) => setColorScheme(value as "auto" | "light" | "dark")}
          data={[
            { value: "auto", label: words.themes.auto },
            { value: "light", label: words.themes.light },
            { value: "dark", label: words.themes.dark },
          ]}
        />
        <Switch
          size="xs"
          label={words.letterKeys}
          description={words.letterKeysHint}
          checked={hasLetterKeys}
          onChange={(event) => usePreferences.setState({ hasLetterKeys: event.currentTarget.checked })}
        />
      </div>
    </section>
  );
}

const NOTHING = { current: "", next: "", again: "" };

function PasswordForm() {
  const [typed, setTyped] = useState(NOTHING);
  const change = useAction({
    run: async () => api.POST("/api/v1/auth/password", { body: { current: typed.current, new: typed.next } }),
    changes: [],
    failed: words.passwordFailed,
    done: () => {
      setTyped(NOTHING);
      tellDone(words.passwordChanged);
    },
  });
  const differs = typed.again !== "" && typed.again !== typed.next;
  const field = (name: keyof typeof NOTHING, label: string, autoComplete: string, error?: string) => (
    <PasswordInput
      size="xs"
      label={label}
      autoComplete={autoComplete}
      value={typed[name]}
      error={error}
      onChange={(event) => setTyped({ ...typed, [name]: event.currentTarget.value })}
    />
  );
  return (
    <section className={classes.section}>
      <h3>{words.password}</h3>
      <form
        className={classes.form}
        onSubmit={(event) => {
          event.preventDefault();
          change.mutate();
        }}
      >
        {field("current", words.currentPassword, "current-password")}
        {field("next", words.newPassword, "new-password")}
        {field("again", words.newPasswordAgain, "new-password", differs ? words.passwordsDiffer : undefined)}
        <Button
          type="submit"
          w="fit-content"
          loading={change.isPending}
          disabled={typed.current === "" || typed.next === "" || typed.again !== typed.next}
        >
          {words.changePassword}
        </Button>
      </form>
    </section>
  );
}
