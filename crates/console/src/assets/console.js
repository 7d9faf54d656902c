// The one script of the console: it asks the browser for a passkey, and keeps clicks from counting
// that a person cannot have meant. Everything else works without it.
'use strict';

(() => {
  // How long a button that grants something ignores clicks after it appeared, moved, or came back
  // into view: nobody decides faster than that.
  const QUIET_MS = 500;

  const EARLY = 'That was quick. Look once more at what you grant, then press again.';
  const NOT_ABLE = 'This browser cannot use passkeys here.';
  const NOT_DONE = 'Your passkey gave no answer. Nothing was changed; try again.';
  const NOT_REACHED = 'The console cannot be reached. Nothing was changed; try again.';
  const NO_LINK = 'This address has no link in it. Open the link from your operator as it is.';

  const decode = (text) => {
    const binary = atob(text.replaceAll('-', '+').replaceAll('_', '/'));
    return Uint8Array.from(binary, (character) => character.charCodeAt(0));
  };

  const encode = (buffer) => {
    let binary = '';
    for (const byte of new Uint8Array(buffer)) binary += String.fromCharCode(byte);
    return btoa(binary).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '');
  };

  const say = (text) => {
    const place = document.querySelector('[data-status]');
    if (place) place.textContent = text;
  };

  // Clicks too early.

  const guardButtons = () => {
    const buttons = [...document.querySelectorAll('[data-guarded]')];
    if (buttons.length === 0) return;
    let quietUntil = performance.now() + QUIET_MS;
    const beQuiet = () => {
      quietUntil = performance.now() + QUIET_MS;
    };
    addEventListener('focus', beQuiet);
    addEventListener('pageshow', beQuiet);
    addEventListener('resize', beQuiet);
    document.addEventListener('visibilitychange', beQuiet);

    // A person who scrolls moves the page on purpose, so places are those on the page.
    const places = new Map();
    const look = () => {
      for (const button of buttons) {
        const box = button.getBoundingClientRect();
        const place = [box.left + scrollX, box.top + scrollY, box.width, box.height]
          .map(Math.round)
          .join();
        if (places.get(button) !== place) {
          if (places.has(button)) beQuiet();
          places.set(button, place);
        }
      }
    };
    const watch = () => {
      look();
      requestAnimationFrame(watch);
    };
    watch();

    document.addEventListener(
      'click',
      (event) => {
        const button = event.target.closest?.('[data-guarded]');
        if (!button) return;
        // Also for what moved since the last frame.
        look();
        if (event.isTrusted && performance.now() >= quietUntil) return;
        event.preventDefault();
        event.stopImmediatePropagation();
        say(EARLY);
      },
      true,
    );
  };

  // Passkeys.

  const ask = async (form, fields) => {
    const body = new URLSearchParams({ csrf: form.elements.csrf.value, ...fields });
    let answer;
    try {
      const response = await fetch(form.dataset.begin, {
        method: 'POST',
        body,
        credentials: 'same-origin',
        redirect: 'error',
        cache: 'no-store',
      });
      answer = await response.json();
    } catch {
      throw new Error(NOT_REACHED);
    }
    if (answer.code) throw new Error(`${answer.title}. ${answer.text} (${answer.code})`);
    return answer;
  };

  const fill = (form, fields) => {
    for (const [name, value] of Object.entries(fields)) form.elements[name].value = value;
  };

  const assert = async (form, challenge, rpId, credentials) => {
    const credential = await navigator.credentials.get({
      publicKey: {
        challenge: decode(challenge),
        rpId,
        allowCredentials: credentials.map((id) => ({ type: 'public-key', id: decode(id) })),
        userVerification: 'required',
        timeout: 240000,
      },
    });
    fill(form, {
      credential_id: encode(credential.rawId),
      client_data: encode(credential.response.clientDataJSON),
      authenticator_data: encode(credential.response.authenticatorData),
      signature: encode(credential.response.signature),
    });
  };

  const signIn = async (form) => {
    const open = await ask(form, {});
    fill(form, { ceremony_id: open.ceremony_id });
    await assert(form, open.challenge, open.rp_id, []);
  };

  const answer = (form) => {
    const { challenge, rpId, credentials } = form.dataset;
    return assert(form, challenge, rpId, credentials.split(' '));
  };

  const beginEnrolment = async (form) => {
    const open = await ask(form, { link_token: form.elements.link_token.value });
    document.querySelector('[data-person]').textContent = open.principal;
    document.querySelector('[data-tenant]').textContent = open.tenant;
    return open;
  };

  const enrol = async (form) => {
    if (!form.elements.link_token.value) throw new Error(NO_LINK);
    const open = await beginEnrolment(form);
    const credential = await navigator.credentials.create({
      publicKey: {
        rp: { id: open.rp_id, name: 'Context Layer' },
        user: { id: decode(open.user_id), name: open.principal, displayName: open.principal },
        challenge: decode(open.challenge),
        pubKeyCredParams: open.algorithms.map((alg) => ({ type: 'public-key', alg })),
        excludeCredentials: open.excluded.map((id) => ({ type: 'public-key', id: decode(id) })),
        authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
        attestation: 'none',
        timeout: 240000,
      },
    });
    fill(form, {
      ceremony_id: open.ceremony_id,
      client_data: encode(credential.response.clientDataJSON),
      attestation_object: encode(credential.response.attestationObject),
    });
  };

  // The token of an enrolment link leaves the address, so that nobody reads it there.
  const takeLink = (form) => {
    const token = location.hash.slice(1);
    if (!token) return say(NO_LINK);
    form.elements.link_token.value = token;
    history.replaceState(null, '', location.pathname);
    beginEnrolment(form).catch((error) => say(error.message));
  };

  const CEREMONIES = { 'sign-in': signIn, answer, enrol };

  const passkeyForms = () => {
    for (const form of document.querySelectorAll('form[data-passkey]')) {
      const ceremony = form.dataset.passkey;
      if (ceremony === 'enrol') takeLink(form);
      let isRunning = false;
      form.addEventListener('submit', async (event) => {
        event.preventDefault();
        if (isRunning) return;
        if (!window.PublicKeyCredential) return say(NOT_ABLE);
        isRunning = true;
        say('');
        form.setAttribute('aria-busy', 'true');
        try {
          await CEREMONIES[ceremony](form);
          form.submit();
        } catch (error) {
          isRunning = false;
          form.removeAttribute('aria-busy');
          say(error instanceof DOMException ? NOT_DONE : error.message);
        }
      });
    }
  };

  document.querySelector('[data-focus]')?.focus();
  guardButtons();
  passkeyForms();
})();
