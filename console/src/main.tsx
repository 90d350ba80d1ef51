import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import './styles/tokens.css';
import './styles/base.css';
import './styles/layout.css';
import './styles/controls.css';
import './styles/content.css';
import './styles/tables.css';
import './styles/feedback.css';
import './styles/forms.css';
import './styles/pages.css';
import './ui/locale.ts';
import './ui/theme.ts';
import { resumeSession } from './api/session.ts';
import { App } from './app.tsx';

void resumeSession();
createRoot(document.getElementById('root')!).render(
  <StrictMode>
    <App />
  </StrictMode>,
);
